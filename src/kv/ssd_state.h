#pragma once

// What the threads of an SSD tier share; all of it under one mutex, which nobody holds during I/O.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kv/ssd_index.h"
#include "kv/ssd_options.h"
#include "kv/ssd_queue.h"

namespace sluice::kv {

struct SsdState {
    struct Sync {
        std::uint64_t after = 0;  ///< So many puts have to be finished.
        std::move_only_function<void(Result<void>)> done;
    };
    struct Erasure {
        std::move_only_function<bool(std::string_view name)> which;
        std::move_only_function<void(std::size_t erased)> done;
        std::size_t erased = 0;
    };

    explicit SsdState(std::uint64_t queue_bytes) : queue(queue_bytes) {}

    void tell(std::string name, SsdChange change) {
        if (listened) events.push_back({.name = std::move(name), .change = change});
    }
    /// The entry is gone.
    void end(const SsdIndex::Place& place, SsdChange why) {
        tell(*place.entry().name, why);
        index.kill(place);
    }

    /// The put will not get to disk. What it would have replaced must not be taken for it.
    void lose(const std::shared_ptr<SsdPut>& put) {
        ++counts.write_failures;
        if (!put->taken_back)
            if (const auto old = index.find(put->name)) end(*old, SsdChange::kErased);
        queue.finish(put);
    }

    mutable std::mutex mutex;
    std::condition_variable work;  ///< For the thread that writes.
    SsdIndex index;
    SsdQueue queue;
    SsdStats counts;  ///< Those that count up.
    bool listened = false;
    std::vector<SsdEvent> events;
    std::vector<Sync> syncs;
    std::vector<Erasure> erasures;
    std::uint64_t next_sequence = 1;
    std::uint64_t next_number = 1;
    bool stopping = false;
};

}  // namespace sluice::kv
