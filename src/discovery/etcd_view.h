#pragma once

// The workers below a prefix of etcd, followed by asking again and again: mostly only for what changed
// since, now and then for everything. That a key is gone is seen by the count that comes with each
// answer, so that nothing depends on having heard of it at the time. While etcd does not answer, what was
// known stays so.
//
// Pure: answers and the time go in, requests and sets of workers come out. Not thread-safe.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "discovery/etcd_codec.h"
#include "discovery/membership.h"

namespace sluice::discovery {

class EtcdView {
public:
    static constexpr std::chrono::milliseconds kPause{1'000};
    static constexpr std::chrono::milliseconds kLongestPause{5'000};  ///< While it is away.
    static constexpr std::chrono::milliseconds kResync{30'000};

    EtcdView(std::string prefix, Time now)
        : prefix_(std::move(prefix)), due_(now), full_due_(now) {}

    /// When to ask next.
    [[nodiscard]] Time due() const { return due_; }
    /// The body for /v3/kv/range; then exactly one of the two below is to be called.
    [[nodiscard]] std::string ask(Time now);

    /// All workers, if they are not the same as before. An error is a failure, too.
    [[nodiscard]] Result<std::optional<std::vector<WorkerEntry>>> on_answer(std::string_view json,
                                                                            Time now);
    void on_failure(Time now);

    /// Since when it has not answered; nullopt if it did.
    [[nodiscard]] std::optional<Time> silent_since() const { return silent_since_; }
    /// Why a key is no worker, by key; for the log.
    [[nodiscard]] const std::map<std::string, std::string>& rejected() const { return rejected_; }

private:
    void take(const EtcdKeyValue& pair);
    [[nodiscard]] std::vector<WorkerEntry> workers() const;

    std::string prefix_;
    Time due_;
    Time full_due_;
    bool full_ = true;  ///< The last request was for everything.
    std::int64_t revision_ = 0;
    std::map<std::string, WorkerEntry> workers_;   ///< By key.
    std::map<std::string, std::string> rejected_;  ///< Keys that are no workers.
    std::optional<Time> silent_since_;
    std::chrono::milliseconds pause_ = kPause;
};

}  // namespace sluice::discovery
