#pragma once

// The prefills of a worker whose blocks wait to be fetched. Each ends by its release, by its time, or
// with the worker; who is in the middle of reading one keeps it for as long as that takes.
//
// Everything on the loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/block_hold.h"
#include "net/event_loop.h"

namespace sluice::worker {

class KvHolds {
public:
    enum class End : std::uint8_t { kReleased, kTimedOut, kStopped };

    KvHolds(net::EventLoop& loop, std::chrono::milliseconds time, std::function<void(End)> on_end);

    struct Held {
        std::shared_ptr<const engine::HeldSequence> sequence;
        std::size_t rank = 0;  ///< Whose pool its blocks are in.
    };

    /// Holds a sequence; returns the hold's name, which is never another's, in another process either.
    /// Beyond limits::kKvHolds nothing is held, and the name is one that nobody knows.
    std::string add(Held held);

    /// Nothing if there is no hold of this name, or no more.
    [[nodiscard]] std::optional<Held> find(const std::string& name) const;

    /// The rank that `name` is, or was, of; 0 for what no hold of this process is called.
    [[nodiscard]] std::size_t rank_of(const std::string& name) const;

    /// No effect on a hold that has ended.
    void release(const std::string& name);
    void clear();

    [[nodiscard]] std::size_t size() const { return holds_.size(); }

private:
    struct Hold {
        Held held;
        net::Timer timer;
    };
    void end(const std::string& name, End how);

    net::EventLoop& loop_;
    std::chrono::milliseconds time_;
    std::function<void(End)> on_end_;
    std::uint64_t process_ = 0;  ///< Drawn at the start.
    std::uint64_t count_ = 0;
    std::unordered_map<std::string, Hold> holds_;
};

}  // namespace sluice::worker
