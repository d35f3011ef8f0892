#include "app/bench_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "app/bench_runner.h"
#include "app/text_file.h"
#include "engine/engine.h"
#include "gateway/model_vocabulary.h"
#include "net/event_loop.h"
#include "sim/engine_fit.h"
#include "tensor/target.h"
#include "trace/prompt_maker.h"
#include "trace/trace.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;
using ModelPtr = std::shared_ptr<const engine::Model>;

/// Prompts, and sequences that decode together at a length; not so much of both that it takes long.
constexpr auto kPrompts = std::to_array<std::size_t>({1, 16, 64, 256, 512, 1'024, 2'048, 4'096});
constexpr auto kBatches = std::to_array<std::size_t>({1, 2, 4, 8, 16, 32});
constexpr auto kContexts = std::to_array<std::size_t>({32, 512, 2'048});
constexpr std::size_t kDecodeTokensMost = 16'384;
/// Steps that are measured of each kind.
constexpr std::size_t kSteps = 16;
/// Requests that show what the way through the service costs.
constexpr std::size_t kCalls = 15;
constexpr std::uint32_t kShortWords = 20;
constexpr std::uint32_t kLongWords = 1'200;

// ---- The engine's steps ---------------------------------------------------------------------------

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

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

class EngineMeasure {
public:
    EngineMeasure(ModelPtr model, std::size_t threads)
        : model_(std::move(model)), threads_(threads) {}

    /// Each chunk of a prompt is a run of one step.
    Result<void> prompt(std::size_t tokens) {
        auto runner = make_runner(1, tokens + 2);
        if (!runner) return std::unexpected(runner.error());
        std::vector<std::vector<double>> times;
        // The first repeat touches memory for the first time.
        for (std::size_t repeat = 0; repeat <= kRepeats; ++repeat) {
            times_.begin();
            if (auto sent = (*runner)->submit(tokens, 1); !sent)
                return std::unexpected(sent.error());
            (*runner)->run_to_the_end();
            times.resize(times_.steps().size());
            for (std::size_t i = 0; repeat > 0 && i < times.size(); ++i)
                times[i].push_back(times_.steps()[i].microseconds);
        }
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < times.size(); ++i) {
            sim::MeasuredRun run{.steps = 1, .load = {}, .microseconds = median(times[i])};
            const std::uint64_t rows =
                times_.steps()[i].report.prefill_tokens + times_.steps()[i].report.decode_tokens;
            run.load.add_prefill(first, rows);
            first += rows;
            runs_.push_back(run);
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
        runs_.push_back(
            {.steps = 1,
             .load = {.decode_rows = batch, .decode_attended = batch * (context + kSteps / 2)},
             .microseconds = median(std::move(times))});
        return {};
    }

    [[nodiscard]] const std::vector<sim::MeasuredRun>& runs() const { return runs_; }

private:
    static constexpr std::size_t kRepeats = 3;

    Result<std::unique_ptr<BenchRunner>> make_runner(std::size_t sequences, std::size_t tokens) {
        return BenchRunner::create(model_, threads_, sequences, tokens,
                                   [this](const engine::StepReport& step) { times_.add(step); });
    }

    ModelPtr model_;
    std::size_t threads_;
    StepTimes times_;
    std::vector<sim::MeasuredRun> runs_;
};

Result<std::vector<sim::MeasuredRun>> measure_engine(const ModelPtr& model, std::size_t threads) {
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
    return measure.runs();
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

/// Some of what an engine does.
Result<std::vector<sim::MeasuredRun>> measure_sample(const ModelPtr& model, std::size_t threads) {
    EngineMeasure measure(model, threads);
    for (const std::size_t prompt : {512, 2'048})
        if (auto done = measure.prompt(prompt); !done) return std::unexpected(done.error());
    for (const std::size_t batch : {1, 8})
        if (auto done = measure.decode(batch, 512); !done) return std::unexpected(done.error());
    return measure.runs();
}

Result<double> measure_neighbours(const ModelPtr& model, const BenchFitOptions& options) {
    const auto alone = measure_sample(model, options.threads);
    if (!alone) return std::unexpected(alone.error());
    const auto neighbours = Neighbours::start(model, options.threads, options.neighbours);
    if (!neighbours) return std::unexpected(neighbours.error());
    const auto beside = measure_sample(model, options.threads);
    if (!beside) return std::unexpected(beside.error());
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(alone->size(), beside->size()); ++i)
        ratios.push_back((*beside)[i].microseconds / (*alone)[i].microseconds);
    return std::max(0.0, median(std::move(ratios)) - 1.0) / static_cast<double>(options.neighbours);
}

/// What an engine with its default options holds.
void set_bounds(sim::EngineParameters& parameters) {
    const engine::EngineOptions options;
    parameters.blocks = static_cast<std::uint32_t>(options.pool_tokens / trace::kTraceBlockTokens);
    parameters.running_max = static_cast<std::uint32_t>(options.running_max);
    parameters.waiting_max = static_cast<std::uint32_t>(options.waiting_max);
    parameters.step_tokens = static_cast<std::uint32_t>(options.step_tokens);
    parameters.step_time_us = std::chrono::duration<double, std::micro>(options.step_time).count();
    parameters.order = sim::PrefillOrder::kShortest;
}

// ---- The way through the service ------------------------------------------------------------------

struct Call {
    double ttft_us = 0.0;
    std::uint32_t prompt_tokens = 0;
};

/// The median of several calls with a prompt of so many words.
Result<Call> call_service(net::EventLoop& loop, net::HttpClient& client,
                          const trace::LoadTarget& target, std::uint32_t words) {
    std::vector<double> times;
    Call call;
    for (std::size_t i = 0; i < kCalls; ++i) {
        std::optional<trace::CallResult> result;
        const auto running = trace::StreamCall::start(
            client, target,
            request_body(target, {.input_tokens = words, .output_tokens = 2},
                         trace::PromptMaker::words(words * kCalls + i, words)),
            {}, Clock::now(), [&](trace::CallResult ended) { result = std::move(ended); });
        while (!result) loop.run_for(std::chrono::milliseconds(1));
        if (result->outcome != trace::CallOutcome::kOk || !result->ttft) {
            return std::unexpected(
                Error(ErrorCode::kUnavailable, "a request failed: " + result->error, target.url));
        }
        times.push_back(static_cast<double>(result->ttft->count()));
        call.prompt_tokens = result->prompt_tokens;
    }
    call.ttft_us = median(std::move(times));
    return call;
}

double engine_time(const sim::EngineParameters& parameters, std::uint64_t tokens) {
    sim::MeasuredRun run{.steps = (tokens + parameters.step_tokens - 1) / parameters.step_tokens,
                         .load = {}};
    run.load.add_prefill(0, tokens);
    return predicted_microseconds(parameters, run);
}

Result<void> measure_service(const ApiOptions& api, sim::EngineParameters& parameters) {
    auto target = api_target(api);
    if (!target) return std::unexpected(target.error());
    net::EventLoop loop;
    net::HttpClient client(loop, {});
    if (auto chosen = choose_model(loop, client, *target); !chosen) return chosen;
    const auto little = call_service(loop, client, *target, kShortWords);
    if (!little) return std::unexpected(little.error());
    const auto much = call_service(loop, client, *target, kLongWords);
    if (!much) return std::unexpected(much.error());
    if (much->prompt_tokens <= little->prompt_tokens)
        return std::unexpected(Error::unsupported("counts no prompt tokens", target->url));
    const double less = little->ttft_us - engine_time(parameters, little->prompt_tokens);
    const double more = much->ttft_us - engine_time(parameters, much->prompt_tokens);
    parameters.request_token_us =
        std::max(0.0, (more - less) / (much->prompt_tokens - little->prompt_tokens));
    parameters.request_us =
        std::max(0.0, less - parameters.request_token_us * little->prompt_tokens);
    return {};
}

// ---- The command ----------------------------------------------------------------------------------

void print_fit(const std::vector<sim::MeasuredRun>& runs, const sim::EngineParameters& fitted) {
    std::fputs(fmt::format("{:>8}{:>8}{:>12}{:>12}{:>12}{:>8}\n", "prompt", "decode", "attended",
                           "measured", "fitted us", "off")
                   .c_str(),
               stderr);
    for (const sim::MeasuredRun& run : runs) {
        const double fit = predicted_microseconds(fitted, run);
        std::fputs(
            fmt::format("{:>8}{:>8}{:>12}{:>12.0f}{:>12.0f}{:>+7.0f} %\n", run.load.prefill_rows,
                        run.load.decode_rows, run.load.prefill_attended + run.load.decode_attended,
                        run.microseconds, fit, 100.0 * (fit / run.microseconds - 1.0))
                .c_str(),
            stderr);
    }
}

}  // namespace

int bench_fit(const BenchFitOptions& options) {
    const auto target = tensor::select_target();
    if (!target) return fail(kCannotStart, target.error());
    const auto path = gateway::find_model(options.model);
    if (!path) return fail(kCannotStart, path.error());
    const auto model = engine::Model::load(*path);
    if (!model) return fail(kCannotStart, model.error());
    const auto runs = measure_engine(*model, options.threads);
    if (!runs) return fail(kFailed, runs.error());
    sim::EngineParameters parameters;
    set_bounds(parameters);
    parameters.request_us = 0.0;
    if (const auto fitted = fit_steps(*runs, parameters); !fitted)
        return fail(kFailed, fitted.error());
    if (options.neighbours > 0) {
        const auto share = measure_neighbours(*model, options);
        if (!share) return fail(kFailed, share.error());
        parameters.neighbour_share = *share;
    }
    if (!options.api.url.empty()) {
        if (const auto measured = measure_service(options.api, parameters); !measured)
            return fail(kFailed, measured.error());
    }
    print_fit(*runs, parameters);
    const std::string text = fmt::format("# {} on {}, {} threads\n", path->filename().string(),
                                         to_string(*target), options.threads) +
                             to_toml(parameters);
    if (options.output.empty()) {
        print(text);
        return kDone;
    }
    if (const auto written = write_text_file(options.output, text); !written)
        return fail(kCannotStart, written.error());
    return kDone;
}

}  // namespace sluice::app
