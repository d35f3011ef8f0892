#pragma once

// A worker that says where it is: again and again, for as long as it lives, to whoever keeps the list of
// workers. What it says holds for a lease; when it says it no more, the list forgets it.
//
// Threads: the loop's.

#include <chrono>
#include <functional>
#include <string>

#include "discovery/worker_entry.h"

namespace sluice::discovery {

struct Announcement {
    WorkerEntry worker;
    std::chrono::seconds lease{15};
};

class Announcer {
public:
    virtual ~Announcer() = default;

    /// From now on. Whether it works is a matter of the log: a list that is away comes back.
    virtual void start() = 0;

    /// Takes it back, and calls `on_done` when that is over, well or not.
    virtual void withdraw(std::function<void()> on_done) = 0;
};

}  // namespace sluice::discovery
