#pragma once

// The native engine in this process, with requests that run to their full length: what `bench engine`
// and `bench --fit` measure.

#include <functional>
#include <memory>

#include "base/error.h"
#include "engine/engine.h"

namespace sluice::app {

class BenchRunner {
public:
    /// Room for `sequences` at once of `tokens` tokens each.
    [[nodiscard]] static Result<std::unique_ptr<BenchRunner>> create(
        const std::shared_ptr<const engine::Model>& model, std::size_t threads,
        std::size_t sequences, std::size_t tokens,
        std::function<void(const engine::StepReport&)> on_step = {});
    BenchRunner(const BenchRunner&) = delete;
    BenchRunner& operator=(const BenchRunner&) = delete;
    ~BenchRunner();

    /// A prompt like no other, so that nothing of it is cached.
    [[nodiscard]] Result<void> submit(std::size_t prompt, std::size_t decode);

    /// Steps until every request has had `outputs` outputs with tokens in all, or has ended.
    void run_until_answered(std::size_t outputs);
    void run_to_the_end();
    /// Steps while `go_on` says so and there is something to do; then ends what still runs.
    void run_while(const std::function<bool()>& go_on);

private:
    BenchRunner(std::unique_ptr<engine::Engine> engine, std::uint32_t vocabulary);

    std::unique_ptr<engine::Engine> engine_;
    std::uint32_t vocabulary_;
    std::size_t requests_ = 0;
    std::size_t running_ = 0;
    std::size_t answered_ = 0;
};

}  // namespace sluice::app
