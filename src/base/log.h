#pragma once

// One line per event on stderr, as text for people or JSON for collectors.
//
// A line is one line whatever is in it: control characters are escaped, so that no input can forge
// an entry, and its length is bounded. Nothing that a client sent or that authenticates somebody
// (bodies, prompts, keys) is ever an argument; request ids are.
//
// A client's mistake is not an error of ours: log it at debug, or not at all.
//
// Threads: any.

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };
enum class Format { kText, kJson };

struct Options {
    Level level = Level::kInfo;
    Format format = Format::kText;
    std::string process = "sluice";  ///< Named in each line: "gateway", "worker-0".
};

/// What SLUICE_LOG says, for example "debug", "warn,json" or "json"; empty is the default.
[[nodiscard]] Result<Options> parse_options(std::string_view text);

/// Reads SLUICE_LOG and starts logging under `process`. Without it the defaults above hold.
[[nodiscard]] Result<void> configure_from_environment(std::string process);
void configure(const Options& options);

[[nodiscard]] bool enabled(Level level);

/// The line as it would be written at `time` (UTC), with its newline; for sinks and tests.
[[nodiscard]] std::string format_line(const Options& options, Level level, std::string_view time,
                                      std::string_view message);

/// Writes formatted text. Never throws: a log line must not end a request.
void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept;

/// One line of the access log, whatever the level is, unless logging is off: {"time","process",
/// "access":OBJECT}, as JSON in both formats. `object` is JSON without control characters.
void access(std::string_view object) noexcept;

/// The line as it would be written, with its newline.
[[nodiscard]] std::string format_access_line(const Options& options, std::string_view time,
                                             std::string_view object);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::kDebug)) write(Level::kDebug, format, fmt::make_format_args(args...));
}

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::kInfo)) write(Level::kInfo, format, fmt::make_format_args(args...));
}

template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::kWarn)) write(Level::kWarn, format, fmt::make_format_args(args...));
}

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::kError)) write(Level::kError, format, fmt::make_format_args(args...));
}

}  // namespace sluice::log
