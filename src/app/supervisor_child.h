#pragma once

// One supervised process: its life, and what it writes. A line of JSON on its standard output is an
// event; each line of its standard error is passed on, except that before it is ready its
// complaints ("sluice: ...", what a command prints when it can't go on) are kept: of several
// processes that fail over the same thing, the user is to read one.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.h"

namespace sluice::app {

/// What a child says on its standard output.
struct ChildEvent {
    enum class Kind { kListening, kReady };
    Kind kind = Kind::kReady;
    std::string url;
    std::string admin;   ///< Of a gateway.
    std::string http{};  ///< Of a cache node.
    bool operator==(const ChildEvent&) const = default;
};

/// nullopt for lines that are something else.
[[nodiscard]] std::optional<ChildEvent> parse_child_line(std::string_view line);

/// Cuts bytes into lines without their newline. One longer than `limits::kChildLineBytes` is cut
/// there, and the rest of it is dropped.
class LineCutter {
public:
    void feed(std::string_view bytes, const std::function<void(std::string_view)>& on_line);
    /// Hands out what has no newline yet.
    void finish(const std::function<void(std::string_view)>& on_line);

private:
    std::string line_;
};

class SupervisedChild {
public:
    struct Events {
        std::function<void(const ChildEvent& event)> on_event;
        std::function<void(std::string_view line)> on_log_line;
    };

    /// Spawn from the main thread (base/subprocess.h says why).
    [[nodiscard]] static Result<SupervisedChild> start(std::vector<std::string> argv,
                                                       Events events);

    [[nodiscard]] pid_t pid() const { return process_.pid(); }
    [[nodiscard]] int pidfd() const { return process_.pidfd(); }
    /// -1 once the child has closed it.
    [[nodiscard]] int output() const { return output_.fd.get(); }
    [[nodiscard]] int errors() const { return errors_.fd.get(); }

    void signal(int number) const { process_.signal(number); }
    /// Its complaints from now on are passed on like any line.
    void now_ready() { keep_complaints_ = false; }

    /// Takes what the child has written by now, a bounded share. Never blocks.
    void read();
    /// How it ended, after the last of what it wrote; nullopt while it runs.
    [[nodiscard]] std::optional<ExitStatus> poll();

    /// The complaints kept, one a line without the last newline; empty if there are none.
    [[nodiscard]] const std::string& complaints() const { return complaints_; }

private:
    struct Stream {
        UniqueFd fd;
        LineCutter lines;
    };

    SupervisedChild(Subprocess process, UniqueFd output, UniqueFd errors, Events events);
    static void read_stream(Stream& stream, const std::function<void(std::string_view)>& on_line);
    void take_error_line(std::string_view line);

    Subprocess process_;
    Stream output_;
    Stream errors_;
    Events events_;
    bool keep_complaints_ = true;
    std::string complaints_;
};

}  // namespace sluice::app
