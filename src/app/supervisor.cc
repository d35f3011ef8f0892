#include "app/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>

#include "app/command.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/units.h"
#include "discovery/worker_entry.h"

namespace sluice::app {
namespace {

using std::chrono::milliseconds;

constexpr const char* kOwnImage = "/proc/self/exe";

/// The port in `url`, which a child of ours said, or `otherwise` while there is none.
std::string port_of(const std::string& url, std::uint16_t otherwise) {
    const std::size_t colon = url.rfind(':');
    return colon == std::string::npos ? std::to_string(otherwise) : url.substr(colon + 1);
}

}  // namespace

std::string own_program() {
    std::array<char, PATH_MAX> path{};
    struct stat named{};
    struct stat running{};
    // A path makes `ps` readable. But a program that was built anew is another one, and its parts
    // may not understand ours.
    if (::readlink(kOwnImage, path.data(), path.size() - 1) > 0 &&
        ::stat(path.data(), &named) == 0 && ::stat(kOwnImage, &running) == 0 &&
        named.st_ino == running.st_ino && named.st_dev == running.st_dev) {
        return path.data();
    }
    return kOwnImage;
}

Supervisor::Supervisor(ServicePlan plan, ServiceEvents events, const StopSignals& signals)
    : plan_(std::move(plan)),
      events_(std::move(events)),
      signals_(signals),
      policy_(plan_.engines.size(), plan_.kv_nodes.size()),
      relay_(STDERR_FILENO) {
    for (const EnginePlan& engine : plan_.engines)
        members_.push_back({.name = "engine " + engine.name});
    for (const KvNodePlan& node : plan_.kv_nodes)
        members_.push_back({.name = "kv node " + node.name});
    members_.push_back({.name = "gateway"});
}

/// Logs a line, unless it would have to wait for a reader.
void Supervisor::note(log::Level level, const std::string& message) {
    if (relay_.idle() && level == log::Level::kWarn) log::warn("{}", message);
    if (relay_.idle() && level == log::Level::kInfo) log::info("{}", message);
    if (events_.on_log_written) events_.on_log_written();
}

void Supervisor::pass_on(std::string_view line) {
    relay_.add(line);
    relay_.flush();
    if (events_.on_log_written) events_.on_log_written();
}

std::vector<std::string> Supervisor::command(std::size_t child) const {
    std::vector<std::string> argv = plan_.program;
    if (argv.empty()) argv.push_back(own_program());
    const std::size_t engines = plan_.engines.size();
    const bool is_node = child >= engines && !is_gateway(child);
    const std::vector<std::string> rest = is_gateway(child) ? gateway_command()
                                          : is_node         ? node_command(child - engines)
                                                            : engine_command(child);
    argv.insert(argv.end(), rest.begin(), rest.end());
    // A node is told all it needs by flags.
    if (!plan_.config.empty() && !is_node) argv.insert(argv.end(), {"--config", plan_.config});
    return argv;
}

std::vector<std::string> Supervisor::engine_command(std::size_t child) const {
    const EnginePlan& engine = plan_.engines[child];
    std::vector<std::string> argv = {
        "engine",    "--model",      engine.model, "--port", port_of(members_[child].url, 0),
        "--threads", engine.threads, "--json"};
    if (engine.dp > 1) argv.insert(argv.end(), {"--dp", std::to_string(engine.dp)});
    if (!plan_.speculation.empty()) argv.insert(argv.end(), {"--speculation", plan_.speculation});
    for (std::size_t i = 0; i < plan_.kv_nodes.size(); ++i)
        argv.insert(argv.end(), {"--kv-store", node(i).url});
    // Stores that are flags stand in place of the file's.
    if (!plan_.kv_nodes.empty() && !plan_.kv_directory.empty())
        argv.insert(argv.end(), {"--kv-store", "dir://" + plan_.kv_directory});
    return argv;
}

std::vector<std::string> Supervisor::node_command(std::size_t index) const {
    const KvNodePlan& plan = plan_.kv_nodes[index];
    std::vector<std::string> argv = {"kvnode",
                                     "--port",
                                     port_of(node(index).url, plan.port),
                                     "--http-port",
                                     port_of(node(index).http, plan.http_port),
                                     "--dram",
                                     plan.dram,
                                     "--retain",
                                     plan.retain,
                                     "--json"};
    if (!plan.folder.empty())
        argv.insert(argv.end(), {"--ssd", fmt::format("{}:{}", plan.folder, plan.ssd)});
    if (!plan.tenant_bytes.empty()) argv.insert(argv.end(), {"--tenant-bytes", plan.tenant_bytes});
    return argv;
}

std::vector<std::string> Supervisor::gateway_command() const {
    const Member& gateway = members_.back();
    std::vector<std::string> argv = {"gateway",
                                     "--port",
                                     port_of(gateway.url, plan_.port),
                                     "--admin-port",
                                     port_of(gateway.admin, plan_.admin_port),
                                     "--json"};
    if (!plan_.keys.empty()) argv.insert(argv.end(), {"--keys", plan_.keys});
    if (!plan_.state.empty()) argv.insert(argv.end(), {"--state", plan_.state});
    if (!plan_.model.empty()) argv.insert(argv.end(), {"--model", plan_.model});
    for (std::size_t i = 0; i < plan_.engines.size(); ++i) {
        const EnginePlan& engine = plan_.engines[i];
        argv.insert(argv.end(),
                    {"--worker", discovery::to_text({engine.pool, members_[i].url, engine.phase})});
    }
    for (std::size_t i = 0; i < plan_.kv_nodes.size(); ++i)
        argv.insert(argv.end(), {"--kv-node", fmt::format("{},{}", node(i).url, node(i).http)});
    if (!plan_.records.empty()) argv.insert(argv.end(), {"--records", plan_.records});
    return argv;
}

ServiceState Supervisor::state() const {
    const auto pid = [](const Member& member) {
        return member.process ? member.process->pid() : 0;
    };
    ServiceState state{.url = members_.back().url,
                       .admin = members_.back().admin,
                       .pid = ::getpid(),
                       .gateway_pid = pid(members_.back())};
    for (std::size_t i = 0; i < plan_.engines.size(); ++i) {
        const EnginePlan& engine = plan_.engines[i];
        state.workers.push_back(
            {engine.name, members_[i].url, pid(members_[i]), std::string(to_string(engine.phase))});
    }
    for (std::size_t i = 0; i < plan_.kv_nodes.size(); ++i)
        state.kv_nodes.push_back({plan_.kv_nodes[i].name, node(i).url, node(i).http, pid(node(i))});
    return state;
}

ServiceEnd Supervisor::run() {
    report_progress();
    while (!finished_) {
        // An action, such as a start that fails, may be a reason for others.
        if (!act()) wait();
    }
    relay_.finish();
    return std::move(end_);
}

bool Supervisor::act() {
    const std::vector<Action> actions = policy_.step(Clock::now());
    for (const Action& action : actions) perform(action);
    return !actions.empty();
}

void Supervisor::perform(const Action& action) {
    const std::optional<SupervisedChild>& process = members_[action.child].process;
    switch (action.kind) {
        case Action::Kind::kStart: start(action.child); return;
        case Action::Kind::kAskToEnd: process->signal(SIGTERM); return;
        case Action::Kind::kKill: process->signal(SIGKILL); return;
        case Action::Kind::kAnnounce:
            if (events_.on_ready) events_.on_ready(state());
            return;
        case Action::Kind::kFinish:
            end_.code = action.code;
            finished_ = true;
            return;
    }
}

void Supervisor::start(std::size_t child) {
    Member& member = members_[child];
    auto process = SupervisedChild::start(
        command(child), {.on_event = [this, child](const ChildEvent& e) { on_event(child, e); },
                         .on_log_line = [this](std::string_view line) { pass_on(line); }});
    if (!process) {
        on_end(child, {ExitStatus::Kind::kExited, kCannotStart},
               "sluice: " + process.error().to_string());
        return;
    }
    member.process.emplace(std::move(*process));
    policy_.started(child, Clock::now());
    if (policy_.announced() && events_.on_restart) events_.on_restart(state());
    report_progress();
}

void Supervisor::report_progress() {
    if (policy_.announced() || !events_.on_progress) return;
    const std::size_t nodes = plan_.kv_nodes.size();
    if (policy_.ready_nodes() < nodes) {
        return events_.on_progress(
            fmt::format("starting the cache, {} of {} nodes ready", policy_.ready_nodes(), nodes));
    }
    const std::size_t engines = plan_.engines.size();
    const std::size_t ready = policy_.ready_engines();
    events_.on_progress(
        ready < engines ? fmt::format("loading the model, {} of {} engines ready", ready, engines)
                        : std::string("starting the gateway"));
}

void Supervisor::wait() {
    constexpr std::size_t kFdsPerMember = 3;
    std::vector<pollfd> fds;
    const auto watch = [&fds](int fd, short events) { fds.push_back({fd, events, 0}); };
    watch(signals_.fd(), POLLIN);
    watch(relay_.pending() ? relay_.fd() : -1, POLLOUT);
    const std::size_t first = fds.size();
    for (const Member& member : members_) {
        watch(member.process ? member.process->pidfd() : -1, POLLIN);
        watch(member.process ? member.process->output() : -1, POLLIN);
        watch(member.process ? member.process->errors() : -1, POLLIN);
    }
    int timeout = -1;
    if (const auto next = policy_.next()) {
        const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
        timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
    }
    if (::poll(fds.data(), fds.size(), timeout) <= 0) return;

    if (fds[0].revents != 0) take_signals();
    if (fds[1].revents != 0) relay_.flush();
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const pollfd* const mine = &fds[first + i * kFdsPerMember];
        if (mine[1].revents != 0 || mine[2].revents != 0) members_[i].process->read();
        if (mine[0].revents == 0) continue;
        if (const auto ended = members_[i].process->poll()) {
            const std::string complaints = members_[i].process->complaints();
            members_[i].process.reset();
            on_end(i, *ended, complaints);
        }
    }
}

void Supervisor::take_signals() {
    while (const auto signal = signals_.next()) {
        const bool again = policy_.stopping();
        policy_.stop(exit_code_for(*signal));
        note(log::Level::kInfo,
             fmt::format("{}: stopping{}", ::sigdescr_np(*signal), again ? " at once" : ""));
    }
}

void Supervisor::on_event(std::size_t child, const ChildEvent& event) {
    Member& member = members_[child];
    const bool moved = !member.url.empty() && member.url != event.url;
    if (moved)
        note(log::Level::kInfo,
             fmt::format("{} is at {} now, and was at {}", member.name, event.url, member.url));
    member.url = event.url;
    member.admin = event.admin;
    member.http = event.http;
    if (event.kind != ChildEvent::Kind::kReady) return;
    if (policy_.announced()) note(log::Level::kInfo, fmt::format("{} is ready again", member.name));
    member.process->now_ready();
    policy_.became_ready(child);
    report_progress();
}

void Supervisor::on_end(std::size_t child, const ExitStatus& status,
                        const std::string& complaints) {
    const std::string& name = members_[child].name;
    const bool expected = policy_.stopping();
    const auto pause = policy_.ended(child, status, Clock::now());
    if (expected) {
        if (policy_.announced() && !status.ok())
            note(log::Level::kInfo, fmt::format("{} ended: {}", name, status.describe()));
        return;
    }
    if (pause) {
        if (!complaints.empty()) pass_on(complaints);
        note(log::Level::kWarn, fmt::format("{} ended: {}; it starts again in {}", name,
                                            status.describe(), format_duration(*pause)));
        return;
    }
    end_.complaint = complaints;
    if (complaints.empty()) {
        end_.complaint =
            fmt::format("sluice: {} ended before it was ready: {}", name, status.describe());
    }
}

}  // namespace sluice::app
