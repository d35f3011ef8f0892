#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <csignal>
#include <memory>

#include "app/command.h"
#include "app/state_folder.h"
#include "app/up_progress.h"
#include "base/unique_fd.h"

namespace sluice::app {
namespace {

UniqueFd open_pidfd(pid_t pid) {
    return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

/// The process drops the lock before its pidfd tells of its end.
void wait_for_end(int pidfd) {
    WaitLine line;
    pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
    while (::poll(&ended, 1, static_cast<int>(WaitLine::kTick.count())) != 1) {
        line.show("running requests are given time to end; `sluice down` again ends them at once");
    }
}

struct Options {
    std::string state;
    bool json = false;
};

int say_nothing_runs(bool json) {
    print(json ? "{\"stopped\":false}\n" : "nothing is running\n");
    return kDone;
}

int say_stopped(bool json, pid_t pid, const Result<ServiceState>& state) {
    const std::string url = state ? state->url : "";
    if (json) {
        const boost::json::object line{{"stopped", true}, {"url", url}, {"pid", pid}};
        print(boost::json::serialize(line) + "\n");
    } else {
        print(fmt::format("stopped the service{}{} (pid {})\n", state ? " on " : "", url, pid));
    }
    return kDone;
}

int down(const Options& options) {
    const Result<StateFolder> folder = StateFolder::find(options.state);
    if (!folder) return fail(kWrongUse, folder.error());
    const std::optional<pid_t> holder = folder->holder();
    const Result<ServiceState> state = folder->read_state();
    // The number could be another process's by now, unless it still holds the lock.
    const UniqueFd process = holder ? open_pidfd(*holder) : UniqueFd();
    if (!process || folder->holder() != holder) return say_nothing_runs(options.json);
    if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0U) != 0 &&
        errno != ESRCH) {
        return fail(kFailed, Error::io(fmt::format("cannot stop process {}", *holder), errno));
    }
    wait_for_end(process.get());
    return say_stopped(options.json, *holder, state);
}

}  // namespace

Run define_down(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command
        .add_option("--state", options->state, "The state folder of the service; as given to `up`")
        ->type_name("DIR");
    command.add_flag("--json", options->json, "Print one JSON object");
    return [options] { return down(*options); };
}

}  // namespace sluice::app
