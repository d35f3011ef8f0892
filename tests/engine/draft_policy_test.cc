// The policy on machines that are played: seconds are given, so nothing here depends on a clock.

#include "engine/draft_policy.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sluice::engine {
namespace {

using Lengths = DraftPolicy::Lengths;

/// A machine on which a step takes `fixed` + `row` x rows, a pass of the head `head` a sequence.
struct Machine {
    double fixed = 1.0;
    double row = 0.1;
    double head = 0.1;
    double acceptance = 0.9;  ///< Of the head's first guess; deeper ones are never right.
};

/// Plays steps of one load and counts how often each choice was made in the last half.
class Player {
public:
    explicit Player(Machine machine) : machine(machine) {}

    /// The choice that was made most often.
    Lengths play(const DraftPolicy::Load& load, int steps) {
        std::map<std::pair<std::size_t, std::size_t>, int> chosen;
        for (int step = 0; step < steps; ++step) {
            const Lengths lengths = policy.choose(load);
            if (step * 2 >= steps) ++chosen[{lengths.lookup, lengths.head}];
            std::size_t rows = load.sequences + load.head * lengths.head;
            for (const auto& lookup : load.lookups) rows += std::min(lookup.length, lengths.lookup);
            const double took = machine.fixed + machine.row * static_cast<double>(rows);
            policy.step_took(rows, took);
            seconds += took;
            if (lengths.head > 0 && load.head > 0) guess(load.head, lengths.head);
        }
        const auto most =
            std::ranges::max_element(chosen, {}, [](auto& each) { return each.second; });
        others = 1.0 - 2.0 * most->second / steps;
        return {.lookup = most->first.first, .head = most->first.second};
    }

    Machine machine;
    DraftPolicy policy;
    double seconds = 0.0;  ///< Of all steps and guesses.
    double others = 0.0;   ///< Share of the steps that used other lengths.

private:
    void guess(std::size_t sequences, std::size_t length) {
        const double took = machine.head * static_cast<double>(sequences * length);
        policy.head_took(sequences, length, took);
        seconds += took;
        for (std::size_t i = 0; i < sequences; ++i) {
            due_ += machine.acceptance;
            const std::size_t right = due_ >= 1.0 ? 1 : 0;
            due_ -= static_cast<double>(right);
            policy.head_guessed(length, right);
        }
    }

    double due_ = 0.0;
};

TEST(DraftPolicyTest, TheHeadIsUsedWhereItIsFaster) {
    Player player({.fixed = 1.0, .row = 0.1, .head = 0.1, .acceptance = 0.9});
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 2'000), (Lengths{.lookup = 0, .head = 1}));
    EXPECT_LT(player.others, 0.05);
}

TEST(DraftPolicyTest, TheHeadIsNotUsedWhereItIsSlowerOrWrong) {
    Player slow({.fixed = 1.0, .row = 0.1, .head = 1.5, .acceptance = 0.9});
    EXPECT_EQ(slow.play({.sequences = 1, .head = 1}, 2'000), Lengths{});
    EXPECT_LT(slow.others, 0.05);
    Player wrong({.fixed = 1.0, .row = 0.1, .head = 0.1, .acceptance = 0.05});
    EXPECT_EQ(wrong.play({.sequences = 1, .head = 1}, 2'000), Lengths{});
    EXPECT_LT(wrong.others, 0.05);
}

TEST(DraftPolicyTest, LookingForWhatNeverPaysCostsNextToNothing) {
    Player player({.fixed = 1.0, .row = 0.5, .head = 1.5, .acceptance = 0.1});
    const std::vector<DraftPolicy::Lookup> hopeless{{.length = 8, .acceptance = 0.05}};
    (void)player.play({.sequences = 1, .lookups = hopeless, .head = 1}, 2'000);
    player.seconds = 0.0;
    EXPECT_EQ(player.play({.sequences = 1, .lookups = hopeless, .head = 1}, 4'000), Lengths{});
    EXPECT_LT(player.seconds / 4'000, 1.01 * 1.5);
}

// With many sequences each row costs what a token brings, so a guess is dear.
TEST(DraftPolicyTest, LoadDecides) {
    Player player({.fixed = 1.0, .row = 0.5, .head = 0.1, .acceptance = 0.8});
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 2'000).head, 1U);
    EXPECT_EQ(player.play({.sequences = 32, .head = 32}, 2'000).head, 0U);
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 2'000).head, 1U);
}

TEST(DraftPolicyTest, AMachineThatChangesIsNoticed) {
    Player player({.fixed = 1.0, .row = 0.1, .head = 2.0, .acceptance = 0.9});
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 2'000).head, 0U);
    player.machine.head = 0.1;
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 20'000).head, 1U);
    // Rows get dear: only trying plain steps again shows that those got dear, too, but less.
    player.machine.fixed = 0.0;
    player.machine.row = 5.0;
    player.machine.acceptance = 0.7;
    EXPECT_EQ(player.play({.sequences = 1, .head = 1}, 20'000).head, 0U);
}

TEST(DraftPolicyTest, GoodLookupsAreLongAndBadOnesAreNot) {
    Player player({.fixed = 1.0, .row = 0.1});
    const std::array good = {DraftPolicy::Lookup{.length = 8, .acceptance = 0.95}};
    EXPECT_EQ(player.play({.sequences = 1, .lookups = good}, 2'000).lookup, 8U);
    const std::array bad = {DraftPolicy::Lookup{.length = 8, .acceptance = 0.05}};
    EXPECT_EQ(player.play({.sequences = 1, .lookups = bad}, 2'000).lookup, 0U);
}

TEST(DraftPolicyTest, TheFirstStepOfALoadIsPlain) {
    DraftPolicy policy;
    EXPECT_EQ(policy.choose({.sequences = 1, .head = 1}), Lengths{});
    policy.step_took(1, 1.0);
    EXPECT_EQ(policy.choose({.sequences = 1, .head = 1}), (Lengths{.lookup = 0, .head = 1}));
    EXPECT_EQ(policy.choose({.sequences = 5, .head = 5}), Lengths{});
}

TEST(DraftPolicyTest, WithoutAClockTheLengthFollowsAcceptance) {
    DraftPolicy policy;
    for (int i = 0; i < 100; ++i) policy.head_guessed(4, 3);
    EXPECT_EQ(policy.head_length(), 3U);
    for (int i = 0; i < 100; ++i) policy.head_guessed(3, 0);
    EXPECT_EQ(policy.head_length(), 1U);
}

}  // namespace
}  // namespace sluice::engine
