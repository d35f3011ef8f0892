// A step asks nobody for memory: everything it needs was taken when the engine was made or when the
// request was admitted. The sinks here keep nothing, so what is counted is the engine's own.

#include "tests/engine/allocation_counter.h"
#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

struct Setting {
    std::size_t threads;
    Speculation speculation;
    std::string name;
};

class AllocationTest : public testing::TestWithParam<Setting> {
protected:
    static EngineOptions options() {
        return {.threads = GetParam().threads,
                .prefill_chunk = 100,
                .speculation = GetParam().speculation};
    }
};

INSTANTIATE_TEST_SUITE_P(Settings, AllocationTest,
                         testing::Values(Setting{1, Speculation::kOff, "Plain"},
                                         Setting{2, Speculation::kOff, "TwoThreads"},
                                         Setting{1, Speculation::kLookup, "Lookup"},
                                         Setting{1, Speculation::kMtp, "Mtp"}),
                         [](const auto& info) { return info.param.name; });

void submit(Engine& engine, Request request) {
    request.sampling.ignore_eos = true;
    ASSERT_TRUE(engine.submit(std::move(request), [](const Output&) {}));
}

TEST_P(AllocationTest, StepsThatDecodeAllocateNothing) {
    const auto engine = make_engine(options());
    for (std::uint32_t i = 0; i < 9; ++i) {
        std::vector<TokenId> prompt = long_prompt(20 + i);
        Request request =
            i % 3 == 0 ? greedy(std::to_string(i), prompt) : sampled(std::to_string(i), prompt, i);
        request.return_logprobs = i % 3 == 2;
        request.sampling.max_new_tokens = 2'000;
        submit(*engine, std::move(request));
    }
    for (int step = 0; step < 10; ++step) ASSERT_TRUE(engine->step());
    const std::size_t before = test::allocations();
    for (int step = 0; step < 200; ++step) ASSERT_TRUE(engine->step());
    EXPECT_EQ(test::allocations() - before, 0U);
    EXPECT_EQ(engine->stats().running, 9U);
}

TEST_P(AllocationTest, StepsOfALongPrefillAllocateNothing) {
    const auto engine = make_engine(options());
    submit(*engine, greedy("long", long_prompt(4'000), 100));
    submit(*engine, greedy("decoding", long_prompt(10), 2'000));
    for (int step = 0; step < 5; ++step) ASSERT_TRUE(engine->step());
    const std::size_t before = test::allocations();
    for (int step = 0; step < 34; ++step) ASSERT_TRUE(engine->step());
    EXPECT_EQ(test::allocations() - before, 0U);
}

TEST(AllocationCounterTest, Counts) {
    const std::size_t before = test::allocations();
    const auto text = std::make_unique<std::vector<int>>(100);
    EXPECT_EQ(test::allocations() - before, 2U);
}

}  // namespace
}  // namespace sluice::engine
