#include "traffic/state.h"

namespace sluice::traffic {
namespace {

State example() {
    State state{.version = 7,
                .plan = {.stable = "stable",
                         .salt = "s",
                         .splits = {{"candidate", 0.05, std::chrono::minutes(10)}},
                         .shadows = {{"stable", 0.1, 4}},
                         .guards = {}},
                .config_digest = "abc",
                .latched = true,
                .reason = "ttft \"high\"",
                .reason_kind = "ttft_p95",
                .since = WallTime(std::chrono::milliseconds(1'764'500'000'123))};
    state.lease_ends["candidate"] = state.since + std::chrono::minutes(3);
    return state;
}

TEST(StateTest, ComesBackEqual) { EXPECT_EQ(parse_state(to_text(example())), example()); }

TEST(StateTest, AnyDamageIsSeen) {
    const std::string text = to_text(example());
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_FALSE(parse_state(text.substr(0, size))) << size;
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        const auto parsed = parse_state(damaged);
        ASSERT_FALSE(parsed) << at;
        EXPECT_EQ(parsed.error().code(), ErrorCode::kCorrupt);
    }
    EXPECT_FALSE(parse_state(text + "x"));
}

}  // namespace
}  // namespace sluice::traffic
