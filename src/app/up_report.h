#pragma once

// How `sluice up` tells what becomes of it: to the user, or, detached, through a pipe to the command
// that started it, which tells the user.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/service_state.h"
#include "base/unique_fd.h"

namespace sluice::app {

enum class Output { kText, kJson };

class UpReport {
public:
    virtual ~UpReport() = default;
    virtual void progress(std::string_view message) = 0;
    virtual void ready(const ServiceState& state) = 0;
    virtual void restarted(const ServiceState& state) = 0;
    /// Lines as they go to the user, without the last newline.
    virtual void failed(std::string_view complaint) = 0;
};

/// Standard output and error.
[[nodiscard]] std::unique_ptr<UpReport> report_to_user(Output output);
/// One line of JSON for each call, until `ready` or `failed` ends it.
[[nodiscard]] std::unique_ptr<UpReport> report_to_pipe(UniqueFd pipe);

/// A line that came through the pipe.
struct ReportLine {
    enum class Kind { kProgress, kReady, kFailed };
    Kind kind;
    std::string message{};  ///< Progress and complaint.
    ServiceState state{};   ///< kReady.
};
[[nodiscard]] std::optional<ReportLine> parse_report_line(std::string_view line);

/// The ready line, or its JSON, to standard output at once.
void print_ready(const ServiceState& state, Output output);

}  // namespace sluice::app
