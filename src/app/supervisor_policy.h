#pragma once

// What `sluice up` does when: which process starts, is restarted, is told to stop, and when all of
// it is over. Pure decisions: events and the time go in, actions come out, so that tests can play
// years of crashes in a millisecond.
//
// The life of a service: the cache nodes start at once; when each of them is ready, the engines start;
// then the gateway; when that can answer, the service is announced. Until then the end of any process
// is the end of everything, because what fails at once would fail again. From then on a process that
// ends is started again, later each time, and a request to stop ends first the gateway, so that its
// running requests still find their engines, then the engines, so that they still can store what they
// computed, and then the nodes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/subprocess.h"

namespace sluice::app {

class SupervisorPolicy {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;

    static constexpr std::chrono::milliseconds kFirstPause{100};
    static constexpr std::chrono::milliseconds kLongestPause{5'000};
    /// A process that lived this long did not fail to start: its next pause is the first again.
    static constexpr std::chrono::milliseconds kGoodLife{10'000};

    struct Action {
        enum class Kind {
            kStart,     ///< Start `child`, then report `started` or `ended`.
            kAskToEnd,  ///< SIGTERM to `child`.
            kKill,      ///< SIGKILL to `child`.
            kAnnounce,  ///< The service can answer. Comes at most once.
            kFinish,    ///< No process is left; the service's exit code is `code`. The last action.
        };
        Kind kind;
        std::size_t child = 0;
        int code = 0;
        bool operator==(const Action&) const = default;
    };

    /// The children are the engines, the nodes, and the gateway, in this order.
    explicit SupervisorPolicy(std::size_t engines, std::size_t nodes = 0);

    [[nodiscard]] std::size_t gateway() const { return children_.size() - 1; }
    [[nodiscard]] bool announced() const { return announced_; }
    [[nodiscard]] bool stopping() const { return stopping_; }
    [[nodiscard]] std::size_t ready_engines() const { return ready(Stage::kEngine); }
    [[nodiscard]] std::size_t ready_nodes() const { return ready(Stage::kNode); }

    void started(std::size_t child, Time now);
    void became_ready(std::size_t child);
    /// Also for a child that could not be started. Returns the pause until it is started again;
    /// nullopt if it is not.
    std::optional<std::chrono::milliseconds> ended(std::size_t child, const ExitStatus& status,
                                                   Time now);
    /// The first request ends the service in good order with this exit code, the second at once.
    void stop(int code);

    /// What is due now. To be carried out in this order.
    [[nodiscard]] std::vector<Action> step(Time now);
    /// When `step` may have more to do, if no event comes before.
    [[nodiscard]] std::optional<Time> next() const;

private:
    enum class Stage : std::uint8_t {
        kNode,
        kEngine,
        kGateway
    };  ///< Later ones need earlier ones.
    enum class Phase { kIdle, kStarting, kReady, kPausing, kEnded };

    struct Child {
        Stage stage = Stage::kEngine;
        Phase phase = Phase::kIdle;
        Time started{};
        Time due{};  ///< kPausing: start again. Else: kill, if `limited`.
        bool limited = false;
        bool asked_to_end = false;
        bool killed = false;
        int failures = 0;  ///< In a row.

        [[nodiscard]] bool alive() const {
            return phase == Phase::kStarting || phase == Phase::kReady;
        }
    };

    [[nodiscard]] std::size_t ready(Stage stage) const;
    [[nodiscard]] bool all_ready_below(Stage stage) const;
    [[nodiscard]] bool any_alive_above(Stage stage) const;
    void abandon(const ExitStatus& status);
    void kill_overdue(Time now, std::vector<Action>& actions);
    void ask_to_end(std::size_t child, Time now, std::vector<Action>& actions);
    void step_up(Time now, std::vector<Action>& actions);
    void step_down(Time now, std::vector<Action>& actions);

    std::vector<Child> children_;
    bool announced_ = false;
    bool stopping_ = false;
    bool at_once_ = false;
    bool finished_ = false;
    int code_ = 0;
};

}  // namespace sluice::app
