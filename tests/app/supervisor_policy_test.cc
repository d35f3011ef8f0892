#include "app/supervisor_policy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "app/command.h"
#include "base/limits.h"

namespace sluice::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Action = SupervisorPolicy::Action;
using Kind = Action::Kind;

constexpr ExitStatus kKilledBySignal{ExitStatus::Kind::kSignalled, SIGKILL};

ExitStatus exited(int code) { return {ExitStatus::Kind::kExited, code}; }

/// A policy with its clock: engines 0 and 1, gateway 2.
class Play {
public:
    Play() : policy(2) {}

    std::vector<Action> step(milliseconds later = milliseconds(0)) {
        now += later;
        std::vector<Action> actions = policy.step(now);
        for (const Action& action : actions) {
            if (action.kind == Kind::kStart) policy.started(action.child, now);
        }
        return actions;
    }

    void announce() {
        step();
        policy.became_ready(0);
        policy.became_ready(1);
        step();
        policy.became_ready(2);
        step();
        ASSERT_TRUE(policy.announced());
    }

    std::optional<milliseconds> end(std::size_t child, ExitStatus status = kKilledBySignal) {
        return policy.ended(child, status, now);
    }

    SupervisorPolicy policy;
    SupervisorPolicy::Time now{};
};

TEST(SupervisorPolicyTest, TheGatewayStartsWhenEveryEngineCanAnswer) {
    Play play;
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kStart, 0}, Action{Kind::kStart, 1}));
    play.policy.became_ready(1);
    EXPECT_THAT(play.step(), IsEmpty());
    play.policy.became_ready(0);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kStart, 2}));
    play.policy.became_ready(2);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kAnnounce}));
    EXPECT_THAT(play.step(), IsEmpty());
    EXPECT_EQ(play.policy.next(), std::nullopt);
}

TEST(SupervisorPolicyTest, CacheNodesStartBeforeTheEnginesAndEndAfterThem) {
    SupervisorPolicy policy(1, 1);  // Engine 0, node 1, gateway 2.
    const auto start = [&policy](std::size_t child) {
        EXPECT_THAT(policy.step({}), ElementsAre(Action{Kind::kStart, child}));
        policy.started(child, {});
        EXPECT_THAT(policy.step({}), IsEmpty());
        policy.became_ready(child);
    };
    start(1);
    EXPECT_EQ(policy.ready_nodes(), 1U);
    EXPECT_EQ(policy.ready_engines(), 0U);
    start(0);
    start(2);
    EXPECT_THAT(policy.step({}), ElementsAre(Action{Kind::kAnnounce}));
    policy.stop(0);
    for (const std::size_t child : {2, 0, 1}) {
        EXPECT_THAT(policy.step({}), ElementsAre(Action{Kind::kAskToEnd, child}));
        policy.ended(child, exited(0), {});
    }
    EXPECT_THAT(policy.step({}), ElementsAre(Action{Kind::kFinish, 0, 0}));
}

// Engines go on without it, and so does its restart.
TEST(SupervisorPolicyTest, ANodeThatIsGoneKeepsNoEngineFromItsRestart) {
    SupervisorPolicy policy(1, 1);
    for (const std::size_t child : {1, 0, 2}) {
        static_cast<void>(policy.step({}));
        policy.started(child, {});
        policy.became_ready(child);
    }
    static_cast<void>(policy.step({}));
    policy.ended(1, kKilledBySignal, {});
    policy.ended(0, kKilledBySignal, {});
    EXPECT_THAT(policy.step(SupervisorPolicy::Time{} + SupervisorPolicy::kFirstPause),
                ElementsAre(Action{Kind::kStart, 0}, Action{Kind::kStart, 1}));
}

TEST(SupervisorPolicyTest, AnEndBeforeTheAnnouncementEndsEverythingWithItsCode) {
    Play play;
    play.step();
    EXPECT_EQ(play.end(0, exited(3)), std::nullopt);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kKill, 1}));
    EXPECT_THAT(play.step(), IsEmpty());
    play.end(1);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kFinish, 0, 3}));
    EXPECT_THAT(play.step(), IsEmpty());
}

TEST(SupervisorPolicyTest, AnEndWithoutACodeOfItsOwnIsAFailure) {
    for (const ExitStatus& status : {kKilledBySignal, exited(0)}) {
        SupervisorPolicy policy(1);
        policy.started(0, {});
        policy.ended(0, status, {});
        EXPECT_THAT(policy.step({}), ElementsAre(Action{Kind::kFinish, 0, kFailed}));
    }
}

TEST(SupervisorPolicyTest, PausesDoubleUpToTheLongest) {
    Play play;
    play.announce();
    for (const int pause : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
        EXPECT_EQ(play.end(0), milliseconds(pause));
        EXPECT_EQ(play.policy.next(), play.now + milliseconds(pause));
        EXPECT_THAT(play.step(milliseconds(pause - 1)), IsEmpty());
        EXPECT_THAT(play.step(milliseconds(1)), ElementsAre(Action{Kind::kStart, 0}));
    }
}

TEST(SupervisorPolicyTest, AGoodLifeMakesThePauseShortAgain) {
    Play play;
    play.announce();
    for (int i = 0; i < 4; ++i) play.step(*play.end(1));
    play.policy.became_ready(1);
    play.step(SupervisorPolicy::kGoodLife);
    EXPECT_EQ(play.end(1), SupervisorPolicy::kFirstPause);
}

TEST(SupervisorPolicyTest, EachProcessHasItsOwnPauses) {
    Play play;
    play.announce();
    play.step(*play.end(0));
    EXPECT_EQ(play.end(0), milliseconds(200));
    EXPECT_EQ(play.end(2), milliseconds(100));
}

TEST(SupervisorPolicyTest, TheGatewayEndsBeforeItsEngines) {
    Play play;
    play.announce();
    play.policy.stop(0);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kAskToEnd, 2}));
    EXPECT_THAT(play.step(), IsEmpty());
    play.end(2, exited(0));
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kAskToEnd, 0}, Action{Kind::kAskToEnd, 1}));
    play.end(1, exited(0));
    EXPECT_THAT(play.step(), IsEmpty());
    play.end(0, exited(0));
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kFinish, 0, 0}));
}

TEST(SupervisorPolicyTest, ASecondRequestToStopKillsAllAtOnceAndKeepsTheFirstCode) {
    Play play;
    play.announce();
    play.policy.stop(130);
    play.step();
    play.policy.stop(0);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kKill, 0}, Action{Kind::kKill, 1},
                                         Action{Kind::kKill, 2}));
    for (const std::size_t child : {0, 1, 2}) play.end(child);
    EXPECT_THAT(play.step(), ElementsAre(Action{Kind::kFinish, 0, 130}));
}

TEST(SupervisorPolicyTest, AProcessThatDoesNotEndWhenAskedIsKilled) {
    Play play;
    play.announce();
    play.policy.stop(0);
    play.step();
    EXPECT_EQ(play.policy.next(), play.now + seconds(limits::kChildStopSeconds));
    EXPECT_THAT(play.step(seconds(limits::kChildStopSeconds)), ElementsAre(Action{Kind::kKill, 2}));
    EXPECT_EQ(play.policy.next(), std::nullopt);
}

TEST(SupervisorPolicyTest, AProcessThatIsNeverReadyIsKilled) {
    Play play;
    play.step();
    play.policy.became_ready(0);
    EXPECT_THAT(play.step(seconds(limits::kChildStartSeconds)),
                ElementsAre(Action{Kind::kKill, 1}));
}

TEST(SupervisorPolicyTest, AStopDuringTheStartOrAPauseWaitsForNobodyElse) {
    Play starting;
    starting.step();
    starting.policy.stop(0);
    EXPECT_THAT(starting.step(),
                ElementsAre(Action{Kind::kAskToEnd, 0}, Action{Kind::kAskToEnd, 1}));

    Play pausing;
    pausing.announce();
    for (const std::size_t child : {0, 1, 2}) pausing.end(child);
    pausing.policy.stop(0);
    EXPECT_THAT(pausing.step(), ElementsAre(Action{Kind::kFinish, 0, 0}));
}

TEST(SupervisorPolicyTest, AProcessThatCannotBeStartedAgainIsTriedLater) {
    Play play;
    play.announce();
    play.end(0);
    play.now += milliseconds(100);
    EXPECT_THAT(play.policy.step(play.now), ElementsAre(Action{Kind::kStart, 0}));
    EXPECT_EQ(play.end(0, exited(kCannotStart)), milliseconds(200));
    EXPECT_THAT(play.step(milliseconds(200)), ElementsAre(Action{Kind::kStart, 0}));
}

// Whatever order processes die, come up and stops arrive in: only the living are signalled, only
// the dead are started, and the last action is the end.
TEST(SupervisorPolicyTest, RandomLivesNeverLeaveAProcessBehind) {
    std::mt19937 random(1);
    for (int life = 0; life < 2'000; ++life) {
        SupervisorPolicy policy(life % 2 == 0 ? 3 : 2, life % 2 == 0 ? 0 : 1);
        SupervisorPolicy::Time now{};
        std::vector<bool> alive(4);
        bool finished = false;
        for (int turn = 0; turn < 10'000 && !finished; ++turn) {
            now += milliseconds(random() % 400);
            for (const Action& action : policy.step(now)) {
                ASSERT_FALSE(finished);
                switch (action.kind) {
                    case Kind::kStart:
                        ASSERT_FALSE(alive[action.child]);
                        alive[action.child] = true;
                        policy.started(action.child, now);
                        break;
                    case Kind::kAskToEnd:
                    case Kind::kKill: ASSERT_TRUE(alive[action.child]); break;
                    case Kind::kAnnounce: break;
                    case Kind::kFinish: finished = true; break;
                }
            }
            const std::size_t child = random() % 4;
            if (turn > 200 && random() % 100 == 0) policy.stop(0);
            if (!alive[child]) continue;
            if (random() % 8 == 0) {
                alive[child] = false;
                policy.ended(child, kKilledBySignal, now);
            } else {
                policy.became_ready(child);
            }
        }
        EXPECT_TRUE(finished);
        EXPECT_EQ(std::count(alive.begin(), alive.end(), true), 0);
    }
}

}  // namespace
}  // namespace sluice::app
