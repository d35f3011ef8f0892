#include "app/engine_measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stop_token>
#include <thread>
#include <utility>

#include "app/bench_runner.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;
using ModelPtr = std::shared_ptr<const engine::Model>;

/// The long one goes by in chunks at all positions up to its length.
constexpr auto kPrompts = std::to_array<std::size_t>({1, 16, 64, 256, 8'192});
/// Sequences that decode together at a length; not so much of both that it takes long.
constexpr auto kBatches = std::to_array<std::size_t>({1, 2, 4, 8, 16, 32});
constexpr auto kContexts = std::to_array<std::size_t>({32, 512, 2'048});
constexpr std::size_t kDecodeTokensMost = 16'384;
/// Decoding steps that are measured of each kind.
constexpr std::size_t kSteps = 12;
constexpr int kPasses = 3;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Takes the time from the end of one step to the end of the next: what lies between them counts.
class StepTimes {
public:
    struct Step {
        engine::StepReport report;
        double microseconds = 0.0;
    };

    void begin() {
        steps_.clear();
        last_ = Clock::now();
    }
    void add(const engine::StepReport& report) {
        const auto now = Clock::now();
        const double took = std::chrono::duration<double, std::micro>(now - last_).count();
        steps_.push_back({.report = report, .microseconds = took});
        last_ = now;
    }
    [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

private:
    Clock::time_point last_;
    std::vector<Step> steps_;
};

/// One pass over steps of some kinds.
class EngineMeasure {
public:
    EngineMeasure(ModelPtr model, std::size_t threads)
        : model_(std::move(model)), threads_(threads) {}

    /// Each chunk of a prompt is a step.
    Result<void> prompt(std::size_t tokens) {
        auto runner = make_runner(1, tokens + 2);
        if (!runner) return std::unexpected(runner.error());
        // The first touches memory for the first time.
        for (int time = 0; time < 2; ++time) {
            times_.begin();
            if (auto sent = (*runner)->submit(tokens, 1); !sent)
                return std::unexpected(sent.error());
            (*runner)->run_to_the_end();
        }
        std::uint64_t first = 0;
        for (const StepTimes::Step& step : times_.steps()) {
            const std::uint64_t chunk = step.report.prefill_tokens + step.report.decode_tokens;
            measured_.push_back(
                {.first = first, .chunk = chunk, .microseconds = step.microseconds});
            first += chunk;
        }
        return {};
    }

    /// The steps in which all of `batch` sequences decode, and nothing else is done.
    Result<void> decode(std::size_t batch, std::size_t context) {
        constexpr std::size_t kLongEnough = 1'000;
        auto runner = make_runner(batch, context + kLongEnough);
        if (!runner) return std::unexpected(runner.error());
        times_.begin();
        for (std::size_t i = 0; i < batch; ++i)
            if (auto sent = (*runner)->submit(context, kLongEnough); !sent)
                return std::unexpected(sent.error());
        std::vector<double> times;
        std::size_t seen = 0;
        (*runner)->run_while([&] {
            for (; seen < times_.steps().size(); ++seen) {
                const StepTimes::Step& step = times_.steps()[seen];
                if (step.report.prefill_tokens == 0 && step.report.decode_tokens == batch)
                    times.push_back(step.microseconds);
            }
            return times.size() < kSteps;
        });
        if (times.empty()) return {};
        measured_.push_back({.batch = batch,
                             .context = context + kSteps / 2,
                             .microseconds = median(std::move(times))});
        return {};
    }

    [[nodiscard]] const std::vector<MeasuredStep>& measured() const { return measured_; }

private:
    Result<std::unique_ptr<BenchRunner>> make_runner(std::size_t sequences, std::size_t tokens) {
        return BenchRunner::create(model_, threads_, sequences, tokens,
                                   [this](const engine::StepReport& step) { times_.add(step); });
    }

    ModelPtr model_;
    std::size_t threads_;
    StepTimes times_;
    std::vector<MeasuredStep> measured_;
};

using Pass = Result<std::vector<MeasuredStep>>;

Pass whole_pass(const ModelPtr& model, std::size_t threads) {
    EngineMeasure measure(model, threads);
    for (const std::size_t prompt : kPrompts)
        if (auto done = measure.prompt(prompt); !done) return std::unexpected(done.error());
    for (const std::size_t batch : kBatches) {
        for (const std::size_t context : kContexts) {
            if (batch * context > kDecodeTokensMost) continue;
            if (auto done = measure.decode(batch, context); !done)
                return std::unexpected(done.error());
        }
    }
    return measure.measured();
}

/// Some of what an engine does.
Pass sample_pass(const ModelPtr& model, std::size_t threads) {
    EngineMeasure measure(model, threads);
    if (auto done = measure.prompt(2'048); !done) return std::unexpected(done.error());
    for (const std::size_t batch : {1, 8})
        if (auto done = measure.decode(batch, 512); !done) return std::unexpected(done.error());
    return measure.measured();
}

/// Engines that compute all the time, for as long as this lives.
class Neighbours {
public:
    static Result<std::unique_ptr<Neighbours>> start(const ModelPtr& model, std::size_t threads,
                                                     std::size_t count) {
        auto all = std::make_unique<Neighbours>();
        for (std::size_t i = 0; i < count; ++i) {
            auto runner = BenchRunner::create(model, threads, 1, kPrompt + kAnswer + 2);
            if (!runner) return std::unexpected(runner.error());
            all->runners_.push_back(std::move(*runner));
        }
        for (const auto& runner : all->runners_) {
            all->threads_.emplace_back([&runner = *runner](const std::stop_token& stop) {
                while (!stop.stop_requested() && runner.submit(kPrompt, kAnswer))
                    runner.run_to_the_end();
            });
        }
        return all;
    }

private:
    static constexpr std::size_t kPrompt = 512;
    static constexpr std::size_t kAnswer = 64;
    std::vector<std::unique_ptr<BenchRunner>> runners_;
    std::vector<std::jthread> threads_;  ///< After what they use.
};

}  // namespace

sim::MeasuredRun MeasuredStep::run(const sim::EngineParameters& parameters) const {
    sim::MeasuredRun run{.steps = 1, .microseconds = microseconds};
    run.load.add_decode(batch, batch * context, parameters.decode_near);
    run.load.add_prefill(first, chunk, parameters.near_tokens);
    return run;
}

Result<std::vector<MeasuredStep>> measure_steps(const ModelPtr& model, std::size_t threads) {
    std::vector<std::vector<MeasuredStep>> passes;
    for (int pass = 0; pass < kPasses; ++pass) {
        auto measured = whole_pass(model, threads);
        if (!measured) return measured;
        passes.push_back(std::move(*measured));
    }
    // The engine plans the same steps each time.
    std::vector<MeasuredStep> medians = passes.front();
    for (std::size_t i = 0; i < medians.size(); ++i) {
        std::vector<double> times;
        for (const auto& pass : passes)
            if (i < pass.size()) times.push_back(pass[i].microseconds);
        medians[i].microseconds = median(std::move(times));
    }
    return medians;
}

Result<double> measure_neighbours(const ModelPtr& model, std::size_t threads,
                                  std::size_t neighbours) {
    std::vector<double> ratios;
    for (int pass = 0; pass < kPasses; ++pass) {
        const auto alone = sample_pass(model, threads);
        if (!alone) return std::unexpected(alone.error());
        const auto running = Neighbours::start(model, threads, neighbours);
        if (!running) return std::unexpected(running.error());
        const auto beside = sample_pass(model, threads);
        if (!beside) return std::unexpected(beside.error());
        for (std::size_t i = 0; i < std::min(alone->size(), beside->size()); ++i)
            ratios.push_back((*beside)[i].microseconds / (*alone)[i].microseconds);
    }
    return std::max(0.0, median(std::move(ratios)) - 1.0) / static_cast<double>(neighbours);
}

}  // namespace sluice::app
