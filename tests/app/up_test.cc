// `sluice up` and `sluice down` as a user's shell runs them: the real commands in processes of their
// own, with stand-ins for gateway and engines (supervisor_stand_in.cc).

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "app/command.h"
#include "app/first_request.h"
#include "app/state_folder.h"
#include "app/supervisor.h"
#include "app/up_ports.h"
#include "base/subprocess.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds kLong(60'000);

struct Outcome {
    int code = -1;
    std::string out{};
    std::string err{};
};

std::string contents(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) >
           0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

int code(const std::optional<ExitStatus>& ended) {
    EXPECT_TRUE(ended) << "still running";
    return ended && ended->kind == ExitStatus::Kind::kExited ? ended->value : -1;
}

/// A command in the foreground whose output is read line by line.
class Running {
public:
    explicit Running(Words words) {
        words.insert(words.begin(), own_program());
        Pipe pipe = *make_pipe();
        process_ = Subprocess::spawn(
            {.argv = std::move(words), .fds = {{pipe.write.get(), 1}, {errors_.get(), 2}}});
        EXPECT_TRUE(process_);
        output_ = ::fdopen(pipe.read.release(), "r");
    }
    ~Running() { std::fclose(output_); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    /// Without its newline; empty at the end of the output.
    std::string line() {
        std::string line;
        int c = 0;
        while ((c = std::fgetc(output_)) != EOF && c != '\n') line += static_cast<char>(c);
        return line;
    }
    Subprocess& process() { return *process_; }
    int wait() { return code(process_->wait(kLong)); }
    [[nodiscard]] std::string errors() const { return contents(errors_.get()); }

private:
    UniqueFd errors_{::memfd_create("err", MFD_CLOEXEC)};
    Result<Subprocess> process_ = std::unexpected(Error::invalid("not started"));
    FILE* output_ = nullptr;
};

class UpTest : public testing::Test {
protected:
    ~UpTest() override { down(); }

    /// Runs a command to its end; files take what it prints, so that nobody waits for a detached
    /// process that kept a pipe.
    Outcome run(Words words) const {
        const UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
        const UniqueFd err(::memfd_create("err", MFD_CLOEXEC));
        words.insert(words.begin(), own_program());
        words.insert(words.end(), {"--state", state_path()});
        auto process =
            Subprocess::spawn({.argv = std::move(words), .fds = {{out.get(), 1}, {err.get(), 2}}});
        EXPECT_TRUE(process);
        const int ended = code(process->wait(kLong));
        return {ended, contents(out.get()), contents(err.get())};
    }

    [[nodiscard]] Words up_words(Words more = {}) const {
        Words words = {"up", "--port", "0", "--model", "good"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    Outcome up(const Words& more = {}) const {
        Words words = up_words({"--detach"});
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    Outcome down() const { return run({"down"}); }

    [[nodiscard]] std::string state_path() const { return home_.path() + "/state"; }
    [[nodiscard]] StateFolder folder() const { return *StateFolder::find(state_path()); }
    [[nodiscard]] ServiceState state() const { return folder().read_state().value(); }
    [[nodiscard]] bool leaves_nothing() const {
        return !folder().holder() && !fs::exists(state_path() + "/up.json") &&
               !fs::exists(state_path() + "/lock");
    }

private:
    TemporaryFolder home_;
};

/// A handle on a process that is not our child.
UniqueFd watch(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U))); }
bool ends(const UniqueFd& process) {
    pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
    return ::poll(&ended, 1, static_cast<int>(kLong.count())) == 1;
}

TEST_F(UpTest, ADetachedServiceIsReadyWhenTheCommandReturns) {
    const Outcome outcome = up();
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_EQ(outcome.out, ready_line(state()) + "\n");
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_EQ(folder().holder(), state().pid);
    EXPECT_EQ(::getsid(state().pid), state().pid) << "the terminal's end would be its end";

    const Outcome stopped = down();
    EXPECT_EQ(stopped.code, kDone);
    EXPECT_THAT(stopped.out,
                MatchesRegex("stopped the service on http://[0-9.:]+ \\(pid [0-9]+\\)\n"));
    EXPECT_TRUE(leaves_nothing());
    EXPECT_TRUE(fs::exists(folder().log_path()));
}

TEST_F(UpTest, NothingToStopIsNoFailure) {
    const Outcome outcome = down();
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_EQ(outcome.out, "nothing is running\n");
    EXPECT_EQ(run({"down", "--json"}).out, "{\"stopped\":false}\n");
}

TEST_F(UpTest, DownAsJsonNamesWhatItStopped) {
    up();
    const ServiceState was = state();
    EXPECT_EQ(run({"down", "--json"}).out, "{\"stopped\":true,\"url\":\"" + was.url +
                                               "\",\"pid\":" + std::to_string(was.pid) + "}\n");
}

TEST_F(UpTest, JsonNamesTheWholeService) {
    const Outcome outcome = up({"--json", "--workers", "2"});
    EXPECT_EQ(outcome.out, to_json(state()) + "\n");
    ASSERT_EQ(state().workers.size(), 2u);
    EXPECT_EQ(state().workers[1].name, "stable-1");
}

TEST_F(UpTest, ASplitServiceHasEnginesForEachPhase) {
    const Outcome outcome = up({"--json", "--prefill", "1", "--decode", "2", "--dp", "3"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    const std::vector<WorkerState> workers = state().workers;
    ASSERT_EQ(workers.size(), 3u);
    EXPECT_EQ(workers[0].name, "stable-prefill-0");
    EXPECT_EQ(workers[0].phase, "prefill");
    EXPECT_EQ(workers[2].name, "stable-decode-1");
    EXPECT_EQ(workers[2].phase, "decode");
    std::ifstream file(folder().log_path());
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(log, HasSubstr("gateway of stable/prefill=" + workers[0].url));
    EXPECT_THAT(log, HasSubstr("gateway of stable/decode=" + workers[1].url));
    EXPECT_THAT(log, HasSubstr("dp 3"));
}

// Which node keeps a block is chosen by the nodes' addresses.
TEST_F(UpTest, CacheNodesHaveTheirPortsAndFoldersAgainAfterDownAndUp) {
    const Words how = {"--kv-nodes", "2", "--kv-node-dram", "64MiB", "--kv-node-ssd", "1GiB"};
    const Outcome outcome = up(how);
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    const std::vector<KvNodeState> first = state().kv_nodes;
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[1].name, "kv-1");
    EXPECT_NE(first[0].url, first[1].url);
    std::ifstream file(folder().log_path());
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(log, HasSubstr("kvnode with " + state_path() + "/kv/kv-1:1GiB"));
    EXPECT_TRUE(fs::is_directory(state_path() + "/kv/kv-1"));
    down();
    up(how);
    const std::vector<KvNodeState> again = state().kv_nodes;
    ASSERT_EQ(again.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(again[i].url, first[i].url);
        EXPECT_EQ(again[i].http, first[i].http);
        EXPECT_NE(again[i].pid, first[i].pid);
    }
}

TEST_F(UpTest, SizesOfCacheNodesAreChecked) {
    EXPECT_NE(up({"--kv-node-dram", "1"}).code, kDone);
    EXPECT_NE(up({"--kv-nodes", "257"}).code, kDone);
    EXPECT_TRUE(leaves_nothing());
}

TEST_F(UpTest, HalfASplitIsWrongUse) {
    for (const Words& how :
         {Words{"--prefill", "1"}, Words{"--decode", "1"},
          Words{"--prefill", "1", "--decode", "1", "--workers", "2"}, Words{"--dp", "0"}}) {
        EXPECT_NE(up(how).code, kDone);
        EXPECT_TRUE(leaves_nothing());
    }
}

TEST_F(UpTest, ASecondServiceIsOneLineThatNamesTheFirst) {
    up();
    const ServiceState first = state();
    for (const Words& how : {Words{"--detach"}, Words{}}) {
        const Outcome second = run(up_words(how));
        EXPECT_EQ(second.code, kCannotStart);
        EXPECT_THAT(second.out, IsEmpty());
        EXPECT_EQ(second.err,
                  fmt::format("sluice: already running on {} (pid {}); stop it with `sluice down "
                              "--state {}`\n",
                              first.url, first.pid, state_path()));
    }
    EXPECT_EQ(state(), first);
}

TEST_F(UpTest, AMissingModelIsItsEnginesOneLine) {
    for (const Words& how : {Words{"--detach"}, Words{}, Words{"--json", "--workers", "3"}}) {
        Words words = {"up", "--port", "0", "--model", "missing"};
        words.insert(words.end(), how.begin(), how.end());
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, kCannotStart);
        EXPECT_THAT(outcome.out, IsEmpty());
        EXPECT_EQ(outcome.err, "sluice: missing: no such file\n");
        EXPECT_TRUE(leaves_nothing());
    }
}

TEST_F(UpTest, ATakenPortIsOneLine) {
    const UniqueFd taken(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(taken.get(), 1), 0);
    ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const int port = ntohs(address.sin_port);
    for (const Words& how : {Words{"--detach"}, Words{}}) {
        Words words = {"up", "--model", "good", "--port", std::to_string(port)};
        words.insert(words.end(), how.begin(), how.end());
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, kCannotStart);
        EXPECT_EQ(
            outcome.err,
            fmt::format("sluice: 127.0.0.1:{}: the port is taken by another program\n", port));
        EXPECT_TRUE(leaves_nothing());
    }
    // The admin address gives way instead, unless it is configured.
    const auto beside = choose_ports(default_service_config().gateway, port - 1);
    if (beside) {
        EXPECT_EQ(beside->admin->port, 0);
    }
}

TEST_F(UpTest, AKilledSupervisorLeavesNoProcessAndNoObstacle) {
    up({"--workers", "2"});
    const ServiceState first = state();
    std::vector<UniqueFd> processes;
    processes.push_back(watch(first.gateway_pid));
    for (const WorkerState& worker : first.workers) processes.push_back(watch(worker.pid));
    for (const UniqueFd& process : processes) ASSERT_TRUE(process);
    ::kill(first.pid, SIGKILL);
    const Outcome again = up();
    EXPECT_EQ(again.code, kDone) << again.err;
    EXPECT_NE(state().pid, first.pid);
    for (const UniqueFd& process : processes) EXPECT_TRUE(ends(process));
}

TEST_F(UpTest, ARestartIsInTheStateAndInTheStream) {
    Running service(up_words({"--json", "--state", state_path()}));
    const ServiceState first = parse_service_state(service.line()).value();
    EXPECT_EQ(state(), first);
    ::kill(first.workers[0].pid, SIGKILL);
    const std::string line = service.line();
    EXPECT_THAT(line, StartsWith(R"({"event":"restarted",)"));
    EXPECT_EQ(state(), parse_service_state(line).value());
    EXPECT_NE(state().workers[0].pid, first.workers[0].pid);
    service.process().signal(SIGTERM);
    EXPECT_EQ(service.wait(), kDone);
    EXPECT_THAT(service.errors(), HasSubstr("engine stable-0 ended: killed by signal 9"));
    EXPECT_TRUE(leaves_nothing());
}

TEST_F(UpTest, AnInterruptedServiceInTheForegroundSaysSo) {
    Running service(up_words({"--state", state_path()}));
    EXPECT_THAT(service.line(), StartsWith("ready on http://"));
    service.process().signal(SIGINT);
    EXPECT_EQ(service.wait(), kInterrupted);
    EXPECT_TRUE(leaves_nothing());
}

TEST_F(UpTest, TheFirstRequestShowsAnAnswerAndHowToGoOn) {
    const Outcome outcome = up({"--first-request"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_EQ(outcome.out,
              fmt::format("{}\n\n> What is the capital of France?\nParis.\n\nAddress: {} (admin "
                          "{})\nAsk it yourself:\n{}\nStop it with `sluice down --state {}`\n",
                          ready_line(state()), state().url, state().admin,
                          curl_line(state().url, "good"), state_path()));
}

TEST_F(UpTest, TheFirstRequestInTheForegroundEndsWithTheService) {
    Running service(up_words({"--first-request", "--json", "--state", state_path()}));
    EXPECT_THAT(service.line(), StartsWith(R"({"event":"ready",)"));
    EXPECT_THAT(service.line(),
                StartsWith(R"({"event":"first_answer","model":"good","text":"Paris)"));
    service.process().signal(SIGTERM);
    EXPECT_EQ(service.wait(), kDone);
}

TEST_F(UpTest, AServiceThatDoesNotAnswerIsUpAllTheSame) {
    const Outcome outcome =
        run({"up", "--port", "0", "--model", "mute", "--detach", "--first-request"});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_EQ(outcome.err,
              "sluice: the service is up, but did not answer the first request: "
              "/v1/chat/completions: status 500: no voice\n");
    EXPECT_TRUE(folder().holder());
}

TEST_F(UpTest, AnInterruptWhileItStartsLeavesNothing) {
    const TemporaryFolder place;
    const std::string started = place.path() + "/started";
    ASSERT_EQ(::mkfifo(started.c_str(), 0600), 0);
    ::setenv("STAND_IN_STARTED", started.c_str(), 1);
    Running service(
        {"up", "--detach", "--port", "0", "--model", "never-ready", "--state", state_path()});
    const UniqueFd waited(::open(started.c_str(), O_RDONLY | O_CLOEXEC));
    ::unsetenv("STAND_IN_STARTED");
    EXPECT_TRUE(folder().holder());
    service.process().signal(SIGINT);
    EXPECT_EQ(service.wait(), kInterrupted);
    EXPECT_EQ(service.errors(), "sluice: stopped before it was ready\n");
    EXPECT_TRUE(leaves_nothing());
}

TEST(UpPortsTest, TheAdminAddressFollowsUnlessItIsConfigured) {
    const GatewayConfig defaults = default_service_config().gateway;
    const auto any = choose_ports(defaults, 0);
    ASSERT_TRUE(any);
    EXPECT_EQ(any->listen->port, 0);
    EXPECT_EQ(any->admin->port, 0);
    EXPECT_EQ(choose_ports(defaults, 65'535)->admin->port, 0);

    GatewayConfig configured = defaults;
    configured.admin = {{"127.0.0.1", 0}, "sluice.toml:3"};
    EXPECT_EQ(choose_ports(configured, 0)->admin.place, "sluice.toml:3");
    configured.admin = {{"127.0.0.1", 9'000}, "sluice.toml:3"};
    EXPECT_EQ(choose_ports(configured, 9'000).error().to_string(),
              "--port: port 9000 is the admin address's too (sluice.toml:3)");
}

TEST(FirstRequestTest, TheCurlLineSurvivesTheShell) {
    EXPECT_EQ(curl_line("http://h:1", "it's"),
              "curl http://h:1/v1/chat/completions -H 'Content-Type: application/json' -d "
              R"('{"model":"it'\''s","messages":[{"role":"user","content":)"
              R"("What is the capital of France?"}],"temperature":0}')");
}

TEST(FirstRequestTest, WhatATerminalWouldObeyIsNotShown) {
    EXPECT_EQ(printable("a\x1b[2J\tb\r\n\x7f\xc3\xa9"), "a[2J\tb\n\xc3\xa9");
}

}  // namespace
}  // namespace sluice::app
