#pragma once

// The subcommands of `sluice`.
//
// A subcommand is one file `NAME_command.cc` with one function that declares its options, and one line
// in commands.cc. Its text goes to stdout, all else to stderr; its result is an exit code.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace sluice::app {

/// Scripts rely on these.
enum ExitCode : int {
    kDone = 0,
    kFailed = 1,       ///< A gate that does not pass, a request that failed.
    kWrongUse = 2,     ///< The command line or the configuration is wrong.
    kCannotStart = 3,  ///< Port taken, file missing.
    kInterrupted = 130,
};

/// Runs the chosen subcommand after its options were parsed.
using Run = std::function<int()>;

struct Command {
    std::string_view name;
    std::string_view summary;  ///< One line.
    /// Declares options on `command`; called once, whether or not it is the chosen one.
    Run (*define)(CLI::App& command);
};

/// Declares `verbs` below `command`, one of which must be given.
[[nodiscard]] Run define_verbs(CLI::App& command, std::span<const Command> verbs);

/// In the order of `sluice --help`.
[[nodiscard]] std::span<const Command> commands();

/// Prints "sluice: message" to stderr and returns `code`.
int fail(ExitCode code, std::string_view message);
int fail(ExitCode code, const Error& error);
/// One line each.
int fail(ExitCode code, const std::vector<Error>& errors);

/// Whether a file is missing or can't be read, and not what it says is wrong.
[[nodiscard]] bool is_unreadable(const Error& error);

/// Writes to stdout.
void print(std::string_view text);

}  // namespace sluice::app
