#include "app/bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/thread_team.h"
#include "engine/engine.h"
#include "engine/step_cost.h"
#include "tensor/machine_peak.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

/// One engine with requests that run to their full length.
class Runner {
public:
    static Result<Runner> create(const std::shared_ptr<const engine::Model>& model,
                                 std::size_t threads, std::size_t sequences, std::size_t tokens) {
        engine::EngineOptions options;
        options.threads = threads;
        options.running_max = std::max(options.running_max, sequences);
        options.step_tokens = std::max(options.step_tokens, sequences);
        options.prefill_chunk = options.step_tokens;
        options.pool_tokens = std::max<std::size_t>(options.pool_tokens, sequences * (tokens + 64));
        auto engine = engine::Engine::create(model, std::move(options));
        if (!engine) return std::unexpected(engine.error());
        return Runner(std::move(*engine), model->parameters().vocabulary);
    }

    Result<void> submit(std::size_t prompt, std::size_t decode) {
        engine::Request request;
        request.id = fmt::format("{}", requests_++);
        // A salt of its own keeps the request from finding an earlier one's prefix in the pool.
        request.salt = request.id;
        for (std::size_t i = 0; i < prompt; ++i)
            request.input_ids.push_back(
                static_cast<TokenId>((requests_ * 131 + i * 7919) % vocabulary_));
        request.sampling.max_new_tokens = static_cast<std::uint32_t>(decode);
        request.sampling.temperature = 0.0F;
        request.sampling.ignore_eos = true;
        ++running_;
        return engine_->submit(std::move(request), [this](const engine::Output& output) {
            if (!output.tokens.empty()) ++answered_;
            if (output.finish) --running_;
        });
    }

    /// Steps until every request has had `outputs` outputs with tokens in all, or has ended.
    void run_until_answered(std::size_t outputs) {
        while (running_ > 0 && answered_ < outputs) engine_->step();
    }
    void run_to_the_end() {
        while (running_ > 0) engine_->step();
        answered_ = 0;
    }

private:
    Runner(std::unique_ptr<engine::Engine> engine, std::uint32_t vocabulary)
        : engine_(std::move(engine)), vocabulary_(vocabulary) {}

    std::unique_ptr<engine::Engine> engine_;
    std::uint32_t vocabulary_;
    std::size_t requests_ = 0;
    std::size_t running_ = 0;
    std::size_t answered_ = 0;
};

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
    auto runner = Runner::create(model, threads, 1, options.prompt + 1);
    if (!runner) return std::unexpected(runner.error());
    const auto tokens = static_cast<double>(options.prompt);
    Repeats repeats(limits, engine::prompt_cost(*model, options.prompt), tokens);
    // The first run touches memory for the first time.
    for (std::size_t repeat = 0; repeat <= options.repeats; ++repeat) {
        if (repeat > 0) repeats.measure_limit();
        const auto start = Clock::now();
        if (auto sent = runner->submit(options.prompt, 1); !sent)
            return std::unexpected(sent.error());
        runner->run_to_the_end();
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
    auto runner = Runner::create(model, threads, batch, kPrompt + options.decode);
    if (!runner) return std::unexpected(runner.error());
    const double positions = kPrompt + static_cast<double>(options.decode) / 2.0;
    Repeats repeats(limits, engine::decode_cost(*model, batch, positions),
                    static_cast<double>(batch));
    for (std::size_t repeat = 0; repeat <= options.repeats; ++repeat) {
        if (repeat > 0) repeats.measure_limit();
        for (std::size_t i = 0; i < batch; ++i)
            if (auto sent = runner->submit(kPrompt, options.decode + 1); !sent)
                return std::unexpected(sent.error());
        runner->run_until_answered(batch);  // All prompts are computed; the rest is decode.
        const auto start = Clock::now();
        runner->run_to_the_end();
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
