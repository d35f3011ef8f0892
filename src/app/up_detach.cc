#include "app/up_detach.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>

#include <array>
#include <optional>

#include "app/command.h"
#include "app/supervisor_child.h"
#include "app/supervisor_signals.h"
#include "app/up_progress.h"
#include "app/up_report.h"
#include "base/subprocess.h"

namespace sluice::app {
namespace {

class Waiting {
public:
    Waiting(Subprocess& service, UniqueFd reports, const StopSignals& signals)
        : service_(service), reports_(std::move(reports)), signals_(signals) {
        ::fcntl(reports_.get(), F_SETFL, O_NONBLOCK);
    }

    /// Until the service is ready, or has ended.
    void run() {
        WaitLine line;
        while (!ready && !end) {
            std::array<pollfd, 3> fds{{{signals_.fd(), POLLIN, 0},
                                       {reports_.get(), POLLIN, 0},
                                       {service_.pidfd(), POLLIN, 0}}};
            ::poll(fds.data(), fds.size(), static_cast<int>(WaitLine::kTick.count()));
            while (signals_.next()) {
                interrupted = true;
                message_ = "stopping";
                service_.signal(SIGTERM);
            }
            if (fds[2].revents != 0) end = service_.poll();
            read_reports();
            line.show(message_);
        }
    }

    bool interrupted = false;
    std::optional<ServiceState> ready{};
    std::optional<ExitStatus> end{};
    std::string complaint{};

private:
    void read_reports() {
        std::array<char, 4096> buffer;
        while (reports_) {
            const ssize_t count = ::read(reports_.get(), buffer.data(), buffer.size());
            if (count < 0) return;
            if (count == 0) return reports_.reset();
            lines_.feed({buffer.data(), static_cast<std::size_t>(count)},
                        [this](std::string_view line) { take(line); });
        }
    }

    void take(std::string_view text) {
        std::optional<ReportLine> line = parse_report_line(text);
        if (!line) return;
        switch (line->kind) {
            case ReportLine::Kind::kProgress:
                if (!interrupted) message_ = std::move(line->message);
                return;
            case ReportLine::Kind::kReady: ready = std::move(line->state); return;
            case ReportLine::Kind::kFailed: complaint = std::move(line->message); return;
        }
    }

    Subprocess& service_;
    UniqueFd reports_;
    const StopSignals& signals_;
    LineCutter lines_;
    std::string message_ = "starting";
};

int tell_failure(const Waiting& waiting, const std::string& log) {
    const ExitStatus& end = *waiting.end;
    if (waiting.interrupted) return fail(kInterrupted, "stopped before it was ready");
    if (waiting.complaint.empty()) {
        return fail(kFailed, fmt::format("the service ended before it was ready: {}; see {}",
                                         end.describe(), log));
    }
    fmt::print(stderr, "{}\n", waiting.complaint);
    const bool has_code = end.kind == ExitStatus::Kind::kExited && end.value != kDone;
    return has_code ? end.value : kFailed;
}

}  // namespace

DetachedStart start_detached(std::vector<std::string> argv, const std::string& log) {
    const Result<StopSignals> signals = StopSignals::take();
    if (!signals) return {fail(kCannotStart, signals.error())};
    Result<Pipe> pipe = make_pipe();
    if (!pipe) return {fail(kCannotStart, pipe.error())};
    Result<Subprocess> service = Subprocess::spawn({.argv = std::move(argv),
                                                    .fds = {{pipe->write.get(), kReportFd}},
                                                    .parent_death = ParentDeath::kSparesChild,
                                                    .session = Session::kDetached});
    if (!service) return {fail(kCannotStart, service.error())};
    pipe->write.reset();

    Waiting waiting(*service, std::move(pipe->read), *signals);
    waiting.run();
    if (!waiting.ready || waiting.interrupted) {
        // An interrupt that came together with the ready line: it is stopping now.
        while (!waiting.end) waiting.end = service->wait(std::chrono::minutes(1));
        return {tell_failure(waiting, log)};
    }
    service->release();
    return {kDone, std::move(*waiting.ready)};
}

}  // namespace sluice::app
