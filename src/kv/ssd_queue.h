#pragma once

// What waits to be written, first come first written, bounded in bytes: when the disk doesn't keep up,
// new values are dropped and nobody waits. What waits can be read from here.
//
// Not thread-safe.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/retention.h"
#include "kv/shared_bytes.h"

namespace sluice::kv {

struct SsdPut {
    std::string name;
    SharedBytes value;
    std::int64_t expires_ms = 0;
    Retention retention = Retention::kNone;
    bool taken_back = false;  ///< Erased, or put again: it isn't written, or counts for nothing.
};

class SsdQueue {
public:
    explicit SsdQueue(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

    /// False: full. One of the same name that waits is taken back.
    [[nodiscard]] bool push(SsdPut put);
    /// The next that is to be written; null if there is none. It counts, and is found, until `finish`.
    [[nodiscard]] std::shared_ptr<SsdPut> pop();
    void finish(const std::shared_ptr<SsdPut>& put);

    /// The one that would be read; null if there is none.
    [[nodiscard]] std::shared_ptr<SsdPut> find(std::string_view name) const;
    /// Whether there was one.
    bool take_back(std::string_view name);
    /// Takes back whatever `which` says true to; returns how many.
    template <class Which>
    std::size_t take_back_if(Which which);

    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& [name, put] : by_name_) visit(*put);
    }

    [[nodiscard]] bool empty() const { return waiting_.empty(); }
    /// Waiting and being written.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t size() const { return by_name_.size(); }
    /// How many were pushed so far, and how many of them finished: a count for whoever waits.
    [[nodiscard]] std::uint64_t pushed() const { return pushed_; }
    [[nodiscard]] std::uint64_t finished() const { return finished_; }

private:
    static std::uint64_t cost(const SsdPut& put);

    std::deque<std::shared_ptr<SsdPut>> waiting_;
    std::unordered_map<std::string_view, std::shared_ptr<SsdPut>> by_name_;
    std::uint64_t bytes_ = 0;
    std::uint64_t pushed_ = 0;
    std::uint64_t finished_ = 0;
    const std::uint64_t bytes_max_;
};

template <class Which>
std::size_t SsdQueue::take_back_if(Which which) {
    return std::erase_if(by_name_, [&](auto& entry) {
        if (!which(*entry.second)) return false;
        entry.second->taken_back = true;
        return true;
    });
}

}  // namespace sluice::kv
