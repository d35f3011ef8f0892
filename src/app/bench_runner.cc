#include "app/bench_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::app {

Result<std::unique_ptr<BenchRunner>> BenchRunner::create(
    const std::shared_ptr<const engine::Model>& model, std::size_t threads, std::size_t sequences,
    std::size_t tokens, std::function<void(const engine::StepReport&)> on_step) {
    engine::EngineOptions options;
    options.on_step = std::move(on_step);
    options.threads = threads;
    options.running_max = std::max(options.running_max, sequences);
    options.step_tokens = std::max(options.step_tokens, sequences);
    options.prefill_chunk = options.step_tokens;
    options.pool_tokens = std::max<std::size_t>(options.pool_tokens, sequences * (tokens + 64));
    auto engine = engine::Engine::create(model, std::move(options));
    if (!engine) return std::unexpected(engine.error());
    const std::uint32_t vocabulary = model->parameters().vocabulary;
    return std::unique_ptr<BenchRunner>(new BenchRunner(std::move(*engine), vocabulary));
}

BenchRunner::BenchRunner(std::unique_ptr<engine::Engine> engine, std::uint32_t vocabulary)
    : engine_(std::move(engine)), vocabulary_(vocabulary) {}

BenchRunner::~BenchRunner() = default;

Result<void> BenchRunner::submit(std::size_t prompt, std::size_t decode) {
    engine::Request request;
    request.id = fmt::format("{}", requests_++);
    // A salt of its own keeps the request from finding an earlier one's prefix in the pool.
    request.salt.shared = request.id;
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

void BenchRunner::run_until_answered(std::size_t outputs) {
    while (running_ > 0 && answered_ < outputs) engine_->step();
}

void BenchRunner::run_to_the_end() {
    while (running_ > 0) engine_->step();
    answered_ = 0;
}

void BenchRunner::run_while(const std::function<bool()>& go_on) {
    while (running_ > 0 && go_on()) engine_->step();
    for (std::size_t i = 0; i < requests_; ++i) engine_->abort(fmt::format("{}", i));
    run_to_the_end();
}

}  // namespace sluice::app
