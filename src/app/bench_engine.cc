#include "app/bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "app/bench_runner.h"
#include "base/thread_team.h"
#include "engine/engine.h"
#include "engine/step_cost.h"
#include "tensor/machine_peak.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What one row is measured beside.
struct Limits {
    tensor::MachinePeak peak;
    tensor::MemoryReader& reader;
};

/// Takes repeats of one test, each right after the limit of that moment.
class Repeats {
public:
    Repeats(const Limits& limits, const engine::StepCost& cost, double cost_tokens)
        : limits_(limits), cost_(cost), cost_tokens_(cost_tokens) {}

    /// Before `start`: how fast memory is now.
    void measure_limit() { read_bytes_ = limits_.reader.measure(); }

    void add(double tokens, double seconds) {
        speeds_.push_back(tokens / seconds);
        shares_.push_back(cost_.bytes / cost_tokens_ * speeds_.back() / read_bytes_);
    }

    void finish(BenchEngineRow& row, tensor::WeightType weights) {
        row.add_repeats(std::move(speeds_));
        const double seconds = cost_tokens_ / row.tokens_per_s;
        const tensor::MachinePeak& peak = limits_.peak;
        const double matrix_peak = weights == tensor::WeightType::kQ8_0 ? peak.int8_multiply_adds
                                                                        : peak.float_multiply_adds;
        row.multiply_add_share = (cost_.matrix_multiply_adds / matrix_peak +
                                  cost_.attention_multiply_adds / peak.float_multiply_adds) /
                                 seconds;
        std::ranges::sort(shares_);
        row.bandwidth_share = shares_.empty() ? 0.0 : shares_[shares_.size() / 2];
    }

private:
    const Limits& limits_;
    engine::StepCost cost_;
    double cost_tokens_;  ///< What cost_ is the cost of.
    double read_bytes_ = 1.0;
    std::vector<double> speeds_;
    std::vector<double> shares_;
};

Result<BenchEngineRow> bench_prompt(const std::shared_ptr<const engine::Model>& model,
                                    std::size_t threads, const BenchEngineOptions& options,
                                    const Limits& limits) {
    auto runner = BenchRunner::create(model, threads, 1, options.prompt + 1);
    if (!runner) return std::unexpected(runner.error());
    const auto tokens = static_cast<double>(options.prompt);
    Repeats repeats(limits, engine::prompt_cost(*model, options.prompt), tokens);
    // The first run touches memory for the first time.
    for (std::size_t repeat = 0; repeat <= options.repeats; ++repeat) {
        if (repeat > 0) repeats.measure_limit();
        const auto start = Clock::now();
        if (auto sent = (*runner)->submit(options.prompt, 1); !sent)
            return std::unexpected(sent.error());
        (*runner)->run_to_the_end();
        if (repeat > 0) repeats.add(tokens, seconds_since(start));
    }
    BenchEngineRow row{.test = "prompt", .threads = threads, .batch = 1, .tokens = options.prompt};
    repeats.finish(row, model->output().type());
    return row;
}

Result<BenchEngineRow> bench_decode(const std::shared_ptr<const engine::Model>& model,
                                    std::size_t threads, std::size_t batch,
                                    const BenchEngineOptions& options, const Limits& limits) {
    constexpr std::size_t kPrompt = 16;
    auto runner = BenchRunner::create(model, threads, batch, kPrompt + options.decode);
    if (!runner) return std::unexpected(runner.error());
    const double positions = kPrompt + static_cast<double>(options.decode) / 2.0;
    Repeats repeats(limits, engine::decode_cost(*model, batch, positions),
                    static_cast<double>(batch));
    for (std::size_t repeat = 0; repeat <= options.repeats; ++repeat) {
        if (repeat > 0) repeats.measure_limit();
        for (std::size_t i = 0; i < batch; ++i)
            if (auto sent = (*runner)->submit(kPrompt, options.decode + 1); !sent)
                return std::unexpected(sent.error());
        (*runner)->run_until_answered(batch);  // All prompts are computed; the rest is decode.
        const auto start = Clock::now();
        (*runner)->run_to_the_end();
        if (repeat > 0)
            repeats.add(static_cast<double>(batch * options.decode), seconds_since(start));
    }
    BenchEngineRow row{
        .test = "decode", .threads = threads, .batch = batch, .tokens = batch * options.decode};
    repeats.finish(row, model->output().type());
    return row;
}

}  // namespace

void BenchEngineRow::add_repeats(std::vector<double> speeds) {
    if (speeds.empty()) return;
    std::ranges::sort(speeds);
    tokens_per_s = speeds[speeds.size() / 2];
    slowest = speeds.front();
    fastest = speeds.back();
}

Result<void> bench_engine(const std::shared_ptr<const engine::Model>& model,
                          const BenchEngineOptions& options,
                          const std::function<void(const BenchEngineRow&)>& on_row) {
    for (const std::size_t threads : options.threads) {
        ThreadTeam team(threads);
        tensor::MemoryReader reader(team, model->weight_bytes());
        const Limits limits{.peak = tensor::measure_peak(team), .reader = reader};
        if (options.prompt > 0) {
            auto row = bench_prompt(model, threads, options, limits);
            if (!row) return std::unexpected(row.error());
            on_row(*row);
        }
        if (options.decode == 0) continue;
        for (const std::size_t batch : options.batch) {
            auto row = bench_decode(model, threads, batch, options, limits);
            if (!row) return std::unexpected(row.error());
            on_row(*row);
        }
    }
    return {};
}

}  // namespace sluice::app
