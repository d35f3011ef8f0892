#pragma once

// Outputs of one request on their way from the engine's thread to the loop.
//
// The engine must never wait and a loop that falls behind must not gather a queue: what has not been
// taken is merged, so that a mailbox holds one output at most, which only grows with the tokens
// themselves, and at most one wake-up is under way.
//
// Threads: `put` on the engine's, `take` on the loop's.

#include <cstdint>
#include <mutex>
#include <optional>

#include "engine/request.h"

namespace sluice::worker {

/// When the loop wants to hear of outputs.
enum class Delivery : std::uint8_t { kEveryStep, kAtEnd };

class Mailbox {
public:
    explicit Mailbox(Delivery delivery) : delivery_(delivery) {}

    [[nodiscard]] Delivery delivery() const { return delivery_; }

    /// True if the loop has to be woken: it will not learn of this output otherwise.
    [[nodiscard]] bool put(const engine::Output& output);

    /// Everything since the last time; nothing if there is nothing new.
    [[nodiscard]] std::optional<engine::Output> take();

private:
    const Delivery delivery_;
    std::mutex mutex_;
    std::optional<engine::Output> merged_;
    bool woken_ = false;
};

}  // namespace sluice::worker
