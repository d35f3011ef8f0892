// The scheduler on a machine that exists in numbers alone: steps take what the test says they take.

#include "engine/scheduler.h"

#include <numeric>

#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class VirtualEngine {
public:
    struct Step {
        std::size_t decodes = 0;
        std::size_t prefill = 0;
        nanoseconds took{};
    };

    explicit VirtualEngine(Scheduler::Limits limits, std::size_t blocks = 4096)
        : pool_(*KvPool::create(
              {.blocks = blocks, .block_tokens = 64, .layers = 1, .row_floats = 1})),
          cost_(krill::model("krill-q8_0.gguf")->parameters()),
          scheduler_(pool_, limits, cost_) {}

    void add(const std::string& id, std::size_t prompt, std::uint32_t output) {
        Request request =
            greedy(id, long_prompt(prompt, static_cast<std::uint32_t>(arrivals_)), output);
        Sampler sampler(request.sampling, {}, {});
        std::vector<TokenId> tokens = request.input_ids;
        scheduler_.add(std::make_unique<Sequence>(Sequence{.request = std::move(request),
                                                           .sink = {},
                                                           .sampler = std::move(sampler),
                                                           .arrival = arrivals_++,
                                                           .tokens = std::move(tokens),
                                                           .prompt_tokens = prompt,
                                                           .blocks = {},
                                                           .names = {},
                                                           .keys = {},
                                                           .progress = {}}));
    }

    /// One step; all sequences that are ready get a token.
    Step step() {
        Step step;
        const auto plan = scheduler_.plan();
        const std::vector<StepPart> parts(plan.begin(), plan.end());
        for (const StepPart& part : parts) {
            const bool decode = part.sequence->pending() == 1;
            (decode ? step.decodes : step.prefill) += part.count;
        }
        step.took = time(scheduler_.work());
        now_ += step.took;
        cost_.learn(scheduler_.work(), step.took);
        for (const StepPart& part : parts) advance(*part.sequence, part.count);
        return step;
    }

    [[nodiscard]] nanoseconds now() const { return now_; }
    [[nodiscard]] bool idle() const { return scheduler_.running() + scheduler_.waiting() == 0; }
    [[nodiscard]] std::map<std::string, nanoseconds>& first_tokens() { return first_tokens_; }
    [[nodiscard]] Scheduler& scheduler() { return scheduler_; }

    /// How much slower than usual the machine is.
    double slowness = 1.0;

private:
    [[nodiscard]] nanoseconds time(const StepWork& work) const {
        const double sum = 200'000.0 + 60'000.0 * static_cast<double>(work.rows) +
                           50.0 * static_cast<double>(work.attended) +
                           30'000.0 * static_cast<double>(work.logits);
        return nanoseconds(static_cast<std::int64_t>(slowness * sum));
    }

    void advance(Sequence& sequence, std::size_t count) {
        const bool sampled = sequence.computed + count == sequence.tokens.size();
        scheduler_.complete(sequence, sequence.computed + count);
        if (!sampled) return;
        const std::string id = sequence.request.id;
        first_tokens_.try_emplace(id, now_);
        sequence.tokens.push_back(5);
        if (sequence.output_tokens() >= sequence.request.sampling.max_new_tokens)
            static_cast<void>(scheduler_.remove(id));
    }

    KvPool pool_;
    StepForecast cost_;
    Scheduler scheduler_;
    nanoseconds now_{};
    std::uint64_t arrivals_ = 0;
    std::map<std::string, nanoseconds> first_tokens_;
};

Scheduler::Limits limits(nanoseconds step_time = milliseconds(50)) {
    return {.running_max = 64, .step_tokens = 512, .prefill_chunk = 512, .step_time = step_time};
}

/// Steps until the costs are known.
void warm_up(VirtualEngine& engine) {
    engine.add("warm", 3'000, 300);
    while (!engine.idle()) engine.step();
}

TEST(SchedulerTest, ALongPrefillHoldsNoDecodeLongerThanTheStepTime) {
    for (const auto step_time : {milliseconds(20), milliseconds(50), milliseconds(200)}) {
        VirtualEngine engine(limits(step_time));
        warm_up(engine);
        for (int i = 0; i < 16; ++i) engine.add("d" + std::to_string(i), 10, 100'000);
        for (int i = 0; i < 5; ++i) engine.step();
        engine.add("long", 60'000, 1);
        std::vector<std::size_t> chunks;
        while (!engine.first_tokens().contains("long")) {
            const auto step = engine.step();
            ASSERT_EQ(step.decodes, 16U);
            // What the decodes alone take, and the least chunk, can't be helped.
            if (step.prefill > Scheduler::kPrefillLeast) {
                ASSERT_LE(step.took, step_time * 5 / 4) << chunks.size();
            }
            chunks.push_back(step.prefill);
        }
        // Attention grows with the context, so chunks shrink. They use the time they have.
        EXPECT_GT(chunks.front(), chunks[chunks.size() - 2]);
        EXPECT_EQ(std::accumulate(chunks.begin(), chunks.end(), std::size_t{0}), 60'000U);
    }
}

TEST(SchedulerTest, WithoutDecodesChunksAreAsLargeAsTheyMayBe) {
    VirtualEngine engine(limits(milliseconds(5)));
    warm_up(engine);
    engine.add("long", 2'048, 1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(engine.step().prefill, 512U);
    EXPECT_TRUE(engine.idle());
}

TEST(SchedulerTest, AMachineThatSlowsDownGetsShorterChunks) {
    VirtualEngine engine(limits());
    warm_up(engine);
    for (int i = 0; i < 8; ++i) engine.add("d" + std::to_string(i), 10, 100'000);
    for (int i = 0; i < 5; ++i) engine.step();
    engine.add("long", 100'000, 1);
    for (int i = 0; i < 5; ++i) engine.step();
    engine.slowness = 4.0;
    for (int i = 0; i < 60; ++i) engine.step();
    for (int i = 0; i < 100 && !engine.first_tokens().contains("long"); ++i)
        ASSERT_LE(engine.step().took, milliseconds(62)) << i;
}

TEST(SchedulerTest, APromptGetsOnHoweverLittleTimeThereIs) {
    VirtualEngine engine(limits(nanoseconds(1)));
    engine.add("decode", 10, 100'000);
    engine.step();
    engine.add("long", 160, 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(engine.step().prefill, Scheduler::kPrefillLeast);
    EXPECT_TRUE(engine.first_tokens().contains("long"));
}

TEST(SchedulerTest, ShortPromptsPassLongOnes) {
    VirtualEngine engine(limits());
    warm_up(engine);
    engine.add("long", 20'000, 1);
    engine.step();
    engine.add("short", 100, 1);
    engine.step();
    EXPECT_TRUE(engine.first_tokens().contains("short"));
    EXPECT_FALSE(engine.first_tokens().contains("long"));
}

// More short prompts than the machine can compute: the long one still gets its quarter.
TEST(SchedulerTest, ShortPromptsDoNotStarveALongOne) {
    VirtualEngine engine(limits());
    warm_up(engine);
    engine.add("long", 10'000, 1);
    std::size_t steps = 0;
    for (; !engine.first_tokens().contains("long") && steps < 1'000; ++steps) {
        for (int i = 0; i < 4; ++i)
            engine.add("s" + std::to_string(steps * 4 + static_cast<std::size_t>(i)), 200, 1);
        engine.step();
    }
    EXPECT_LE(steps, 10'000U / 128 + 2);
}

TEST(SchedulerTest, SixtyFourRunAtOnceAndEachStepGivesEachAToken) {
    VirtualEngine engine(limits());
    for (int i = 0; i < 70; ++i) engine.add(std::to_string(i), 4, 50);
    engine.step();
    EXPECT_EQ(engine.scheduler().running(), 64U);
    EXPECT_EQ(engine.scheduler().waiting(), 6U);
    for (int i = 0; i < 49; ++i) EXPECT_EQ(engine.step().decodes, 64U);
    engine.step();
    EXPECT_EQ(engine.scheduler().running(), 6U);
}

// A step in which blocks run out is still one in which every part has its blocks.
TEST(SchedulerTest, PreemptionTakesPartsBack) {
    VirtualEngine engine(limits(), 20);
    for (int i = 0; i < 12; ++i)
        engine.add(std::to_string(i), 60 + static_cast<std::size_t>(i) * 9, 120);
    std::size_t steps = 0;
    for (; !engine.idle() && steps < 20'000; ++steps) {
        engine.step();
        ASSERT_LE(engine.scheduler().work().rows, 512U);
    }
    EXPECT_TRUE(engine.idle());
    EXPECT_GT(engine.scheduler().preemptions(), 0U);
}

}  // namespace
}  // namespace sluice::engine
