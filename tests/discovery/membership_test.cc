#include "discovery/membership.h"

#include <gmock/gmock.h>

#include "base/limits.h"

namespace sluice::discovery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Change::Kind;

const WorkerEntry kA{"stable", "http://a:1"};
const WorkerEntry kB{"stable", "http://b:1"};
constexpr Time kStart = Time(1'000s);

TEST(MembershipTest, ALeaseThatIsRenewedHoldsAndOneThatIsNotEnds) {
    Membership members(8);
    EXPECT_THAT(*members.announce(kA, 10s, kStart), ElementsAre(Change{Kind::kAdd, kA}));
    EXPECT_THAT(members.expire(kStart + 9s), IsEmpty());
    // A restart within the lease is a renewal, too: nothing is removed.
    EXPECT_THAT(*members.announce(kA, 10s, kStart + 9s), IsEmpty());
    EXPECT_THAT(members.expire(kStart + 18s), IsEmpty());
    EXPECT_THAT(members.expire(kStart + 19s), ElementsAre(Change{Kind::kRemove, kA}));
    EXPECT_THAT(members.expire(kStart + 100s), IsEmpty());
    EXPECT_EQ(members.size(), 0U);
    EXPECT_THAT(*members.announce(kA, 10s, kStart + 100s), ElementsAre(Change{Kind::kAdd, kA}));
}

TEST(MembershipTest, ARegistrationWithoutALeaseHoldsUntilItIsWithdrawn) {
    Membership members(8);
    EXPECT_TRUE(members.announce(kA, std::nullopt, kStart));
    EXPECT_THAT(members.expire(kStart + 1'000h), IsEmpty());
    EXPECT_THAT(members.withdraw("stable", kA.url), ElementsAre(Change{Kind::kRemove, kA}));
    EXPECT_THAT(members.withdraw("stable", kA.url), IsEmpty());
}

TEST(MembershipTest, AWorkerIsGoneWhenTheLastSourceLetsGoOfIt) {
    Membership members(8);
    EXPECT_TRUE(members.add_static(kA));
    EXPECT_THAT(*members.announce(kA, 1s, kStart), IsEmpty());
    EXPECT_THAT(members.replace_etcd({kA, kB}), ElementsAre(Change{Kind::kAdd, kB}));
    EXPECT_THAT(members.expire(kStart + 2s), IsEmpty());
    EXPECT_TRUE(members.in_etcd("stable", kA.url));
    EXPECT_THAT(members.withdraw("stable", kA.url), IsEmpty()) << "etcd still has it";
    EXPECT_THAT(members.replace_etcd({kB}), ElementsAre(Change{Kind::kRemove, kA}));
    EXPECT_THAT(members.replace_etcd({}), ElementsAre(Change{Kind::kRemove, kB}));
}

TEST(MembershipTest, TheSameAddressInTwoPoolsIsTwoWorkers) {
    Membership members(8);
    const WorkerEntry other{"candidate", kA.url};
    EXPECT_TRUE(members.announce(kA, 1s, kStart));
    EXPECT_THAT(*members.announce(other, 1s, kStart), ElementsAre(Change{Kind::kAdd, other}));
    EXPECT_THAT(members.withdraw("candidate", kA.url), ElementsAre(Change{Kind::kRemove, other}));
}

TEST(MembershipTest, AnotherPhaseIsAnotherWorker) {
    Membership members(8);
    EXPECT_TRUE(members.announce(kA, 1s, kStart));
    const WorkerEntry decode{kA.pool, kA.url, routing::LegPhase::kDecode};
    EXPECT_THAT(*members.announce(decode, 1s, kStart),
                ElementsAre(Change{Kind::kRemove, kA}, Change{Kind::kAdd, decode}));
}

TEST(MembershipTest, BeyondItsBoundWorkersAreRefusedAndTheRestIsAsBefore) {
    constexpr std::size_t kMax = limits::kRegistryWorkers;
    Membership members(kMax);
    std::size_t refused = 0;
    for (int i = 0; i < 5'000; ++i)
        if (!members.announce({"stable", "http://w:" + std::to_string(i)}, 10s, kStart)) ++refused;
    EXPECT_EQ(refused, 5'000 - kMax);
    EXPECT_EQ(members.size(), kMax);
    EXPECT_TRUE(members.announce({"stable", "http://w:0"}, 10s, kStart)) << "a renewal";
    EXPECT_THAT(members.replace_etcd({kA, kB}), IsEmpty());
    EXPECT_EQ(members.left_out(), 2U);
    EXPECT_EQ(members.expire(kStart + 10s).size(), kMax);
    EXPECT_EQ(members.replace_etcd({kA, kB}).size(), 2U);
    EXPECT_EQ(members.left_out(), 0U);
}

}  // namespace
}  // namespace sluice::discovery
