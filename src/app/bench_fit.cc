#include "app/bench_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/engine_measure.h"
#include "app/text_file.h"
#include "engine/engine.h"
#include "engine/step_forecast.h"
#include "gateway/model_vocabulary.h"
#include "net/event_loop.h"
#include "sim/engine_fit.h"
#include "tensor/target.h"
#include "trace/prompt_maker.h"
#include "trace/trace.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

/// Requests that show what the way through the service costs.
constexpr std::size_t kCalls = 21;
constexpr std::uint32_t kShortWords = 20;
constexpr std::uint32_t kLongWords = 4'000;

// ---- The engine ------------------------------------------------------------------------------------

/// Keys and values that fit into a processor's caches are sought among these.
constexpr auto kNear = std::to_array<std::uint32_t>({1'024, 1'536, 2'048, 3'072, 4'096});
constexpr auto kDecodeNear = std::to_array<std::uint32_t>({512, 1'024, 1'536, 2'048, 4'096});

std::vector<sim::MeasuredRun> runs_of(const std::vector<MeasuredStep>& steps,
                                      const sim::EngineParameters& parameters) {
    std::vector<sim::MeasuredRun> runs;
    for (const MeasuredStep& step : steps) runs.push_back(step.run(parameters));
    return runs;
}

Result<void> fit(const std::vector<MeasuredStep>& steps, sim::EngineParameters& parameters) {
    std::optional<double> least;
    sim::EngineParameters best = parameters;
    for (const std::uint32_t near : kNear) {
        for (const std::uint32_t decode_near : kDecodeNear) {
            sim::EngineParameters tried = parameters;
            tried.near_tokens = near;
            tried.decode_near = decode_near;
            const auto runs = runs_of(steps, tried);
            if (const auto fitted = fit_steps(runs, tried); !fitted) return fitted;
            const double error = fit_error(tried, runs);
            if (least && *least <= error) continue;
            least = error;
            best = tried;
        }
    }
    parameters = best;
    return {};
}

/// What an engine of this model with its default options holds, and what it takes itself for.
void set_bounds(const checkpoint::HyperParameters& model, sim::EngineParameters& parameters) {
    const auto guesses = engine::StepForecast(model).unit_costs();
    parameters.forecast_step_us = 1e-3 * guesses[0];
    parameters.forecast_row_us = 1e-3 * guesses[1];
    parameters.forecast_attended_us = 1e-3 * guesses[2];
    parameters.forecast_logits_us = 1e-3 * guesses[3];
    parameters.kv_token_bytes =
        static_cast<std::uint32_t>(model.layers * (model.kv_rank + model.rope) * sizeof(float));
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
    double way_us = 0.0;  ///< Time to the first token, less what the engine computes.
    std::uint32_t prompt_tokens = 0;
};

double engine_time(const sim::EngineParameters& parameters, const trace::CallResult& call) {
    const std::uint64_t computed = call.prompt_tokens - call.cached_tokens;
    sim::MeasuredRun run{.steps = (computed + parameters.step_tokens - 1) / parameters.step_tokens,
                         .load = {}};
    run.load.add_prefill(call.cached_tokens, computed, parameters.near_tokens);
    return predicted_microseconds(parameters, run);
}

/// The median of several calls with the same prompt of so many words. The engine finds nearly all of
/// it in its cache, so that little is left but the way.
Result<Call> call_service(net::EventLoop& loop, net::HttpClient& client,
                          const trace::LoadTarget& target, const sim::EngineParameters& engine,
                          std::uint32_t words) {
    const std::string body = request_body(target, {.input_tokens = words, .output_tokens = 2},
                                          trace::PromptMaker::words(words, words));
    std::vector<double> times;
    Call call;
    for (std::size_t i = 0; i < kCalls; ++i) {
        std::optional<trace::CallResult> result;
        const auto running =
            trace::StreamCall::start(client, target, body, {}, Clock::now(),
                                     [&](trace::CallResult ended) { result = std::move(ended); });
        while (!result) loop.run_for(std::chrono::milliseconds(1));
        if (result->outcome != trace::CallOutcome::kOk || !result->ttft) {
            return std::unexpected(
                Error(ErrorCode::kUnavailable, "a request failed: " + result->error, target.url));
        }
        call.prompt_tokens = result->prompt_tokens;
        times.push_back(static_cast<double>(result->ttft->count()) - engine_time(engine, *result));
    }
    std::ranges::sort(times);
    call.way_us = times[times.size() / 2];
    return call;
}

Result<void> measure_service(const ApiOptions& api, sim::EngineParameters& parameters) {
    auto target = api_target(api);
    if (!target) return std::unexpected(target.error());
    net::EventLoop loop;
    net::HttpClient client(loop, {});
    if (auto chosen = choose_model(loop, client, *target); !chosen) return chosen;
    const auto little = call_service(loop, client, *target, parameters, kShortWords);
    if (!little) return std::unexpected(little.error());
    const auto much = call_service(loop, client, *target, parameters, kLongWords);
    if (!much) return std::unexpected(much.error());
    if (much->prompt_tokens <= little->prompt_tokens)
        return std::unexpected(Error::unsupported("counts no prompt tokens", target->url));
    parameters.request_token_us = std::max(
        0.0, (much->way_us - little->way_us) / (much->prompt_tokens - little->prompt_tokens));
    parameters.request_us =
        std::max(0.0, little->way_us - parameters.request_token_us * little->prompt_tokens);
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
    const auto steps = measure_steps(*model, options.threads);
    if (!steps) return fail(kFailed, steps.error());
    sim::EngineParameters parameters;
    set_bounds((*model)->parameters(), parameters);
    parameters.request_us = 0.0;
    if (const auto fitted = fit(*steps, parameters); !fitted) return fail(kFailed, fitted.error());
    if (options.neighbours > 0) {
        const auto share = measure_neighbours(*model, options.threads, options.neighbours);
        if (!share) return fail(kFailed, share.error());
        parameters.neighbour_share = *share;
    }
    if (!options.api.url.empty()) {
        if (const auto measured = measure_service(options.api, parameters); !measured)
            return fail(kFailed, measured.error());
    }
    print_fit(runs_of(*steps, parameters), parameters);
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
