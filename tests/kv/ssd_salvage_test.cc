#include "kv/ssd_salvage.h"

#include <gmock/gmock.h>

namespace sluice::kv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SsdSalvageTest : public testing::Test {
protected:
    SsdSalvageTest() {
        for (const std::uint64_t number : {1, 2, 3})
            index_.add_segment({.retention = Retention::kChat, .number = number, .nonce = 1},
                               nullptr);
    }
    void add(std::uint64_t number, const std::string& name, const std::string& parent = {}) {
        SsdIndex::Segment& segment = *index_.segment(number);
        const auto slot = static_cast<std::uint32_t>(segment.entries.size());
        index_.add(segment, {.offset = kSsdSectorBytes * (1 + slot),
                             .value_bytes = 100,
                             .sequence = ++sequence_,
                             .expires_ms = kSsdNever,
                             .slot = slot,
                             .parent = parent.empty() ? kSsdNoKin : ssd_kin(parent),
                             .name = name});
    }
    void use(const std::string& name) { index_.use(*index_.find(name), 0); }
    std::vector<std::uint32_t> kept(std::uint64_t number, const SsdSalvage::Bounds& bounds = {}) {
        return SsdSalvage(index_, *index_.segment(number), bounds,
                          [](const SsdIndex::Entry&) { return false; })
            .slots();
    }

    SsdIndex index_;
    std::uint64_t sequence_ = 0;
};

TEST_F(SsdSalvageTest, WhatOthersFollowElsewhereStaysWithAllThatItFollows) {
    add(1, "root");
    add(1, "alone");
    add(1, "middle", "root");
    add(1, "leaf", "root");
    EXPECT_THAT(kept(1), IsEmpty());
    add(2, "child", "middle");
    EXPECT_THAT(kept(1), ElementsAre(0, 2));
    EXPECT_THAT(kept(2), IsEmpty());
    index_.kill(*index_.find("child"));
    EXPECT_THAT(kept(1), IsEmpty());
}

TEST_F(SsdSalvageTest, WhatWasUsedComesFirst) {
    add(1, "followed");
    add(1, "used root");
    add(1, "used", "used root");
    add(2, "follower", "followed");
    use("used");
    EXPECT_THAT(kept(1), ElementsAre(0, 1, 2));
    EXPECT_THAT(kept(1, {.bytes = 2 * kSsdSectorBytes}), ElementsAre(1, 2));
    EXPECT_THAT(kept(1, {.followed_bytes = 0}), ElementsAre(1, 2));
    // Nothing without what it follows.
    EXPECT_THAT(kept(1, {.bytes = kSsdSectorBytes}), ElementsAre(1));
}

TEST_F(SsdSalvageTest, WhatIsOverIsNotKept) {
    add(1, "over");
    add(1, "followed");
    add(2, "one", "over");
    add(2, "other", "followed");
    const SsdSalvage salvage(index_, *index_.segment(1), {},
                             [](const SsdIndex::Entry& entry) { return *entry.name == "over"; });
    EXPECT_THAT(salvage.slots(), ElementsAre(1));
    EXPECT_EQ(salvage.bytes(), kSsdSectorBytes);
    EXPECT_EQ(salvage.followed_bytes(), kSsdSectorBytes);
}

TEST_F(SsdSalvageTest, AChainThatLeadsBackToItselfEnds) {
    add(1, "a", "b");
    add(1, "b", "a");
    add(2, "c", "b");
    use("c");
    EXPECT_THAT(kept(1), ElementsAre(0, 1));
    EXPECT_THAT(kept(2), ElementsAre(0));
}

}  // namespace
}  // namespace sluice::kv
