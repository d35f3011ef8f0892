// The supervisor with real processes: stand-ins of this test program (supervisor_stand_in.cc).

#include "app/supervisor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

#include "app/command.h"
#include "net/url.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

/// Whether somebody listens at `url`.
bool answers(const std::string& url) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(net::parse_url(url)->port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
           0;
}

void ask_to_stop(int signal = SIGTERM) { ::kill(::getpid(), signal); }

/// One life of a service of stand-ins.
class SupervisorTest : public testing::Test {
protected:
    SupervisorTest() { ::setenv("STAND_IN_ENDED", ended_file().c_str(), 1); }
    ~SupervisorTest() override { ::unsetenv("STAND_IN_ENDED"); }

    ServiceEnd run(const std::string& model = "good", std::vector<std::string> program = {}) {
        const Result<StopSignals> signals = StopSignals::take();
        ServiceEvents events;
        events.on_ready = [this](const ServiceState& state) {
            ready = state;
            if (on_ready) on_ready();
        };
        events.on_restart = [this](const ServiceState& state) {
            restarts.push_back(state);
            if (on_restart) on_restart();
        };
        events.on_progress = [this](std::string_view text) { progress.emplace_back(text); };
        Supervisor supervisor(
            {.program = std::move(program),
             .model = model,
             .engines = {{.name = "a-0", .model = model}, {.name = "a-1", .model = model}},
             .kv_nodes = nodes,
             .kv_directory = "/shared"},
            std::move(events), *signals);
        return supervisor.run();
    }

    [[nodiscard]] std::string ended_file() const { return folder_.path() + "/ended"; }
    [[nodiscard]] std::string ended() const {
        std::ostringstream text;
        text << std::ifstream(ended_file()).rdbuf();
        return text.str();
    }

    std::vector<KvNodePlan> nodes;
    std::function<void()> on_ready = [] { ask_to_stop(); };
    std::function<void()> on_restart;
    ServiceState ready;
    std::vector<ServiceState> restarts;
    std::vector<std::string> progress;

private:
    TemporaryFolder folder_;
};

TEST_F(SupervisorTest, AReadyServiceAnswersAtEveryAddressItNames) {
    on_ready = [this] {
        EXPECT_TRUE(answers(ready.url));
        EXPECT_TRUE(answers(ready.admin));
        ASSERT_EQ(ready.workers.size(), 2u);
        EXPECT_EQ(ready.workers[1].name, "a-1");
        for (const WorkerState& worker : ready.workers) EXPECT_TRUE(answers(worker.url));
        EXPECT_EQ(ready.pid, ::getpid());
        ask_to_stop();
    };
    EXPECT_EQ(run().code, kDone);
    EXPECT_THAT(progress.front(), HasSubstr("0 of 2 engines ready"));
    EXPECT_EQ(progress.back(), "starting the gateway");
}

TEST_F(SupervisorTest, AStopEndsTheGatewayAndThenTheEngines) {
    const ServiceEnd end = run();
    EXPECT_EQ(end.code, kDone);
    EXPECT_EQ(end.complaint, "");
    EXPECT_EQ(ended(), "gateway\nengine\nengine\n");
    EXPECT_TRUE(is_gone(ready.gateway_pid));
    for (const WorkerState& worker : ready.workers) EXPECT_TRUE(is_gone(worker.pid));
}

TEST_F(SupervisorTest, AnInterruptIsToldByTheExitCode) {
    on_ready = [] { ask_to_stop(SIGINT); };
    EXPECT_EQ(run().code, kInterrupted);
}

TEST_F(SupervisorTest, ASecondSignalEndsAtOnceWhatDoesNotListen) {
    on_ready = [] {
        ask_to_stop(SIGINT);
        ask_to_stop(SIGTERM);
    };
    EXPECT_EQ(run("deaf").code, kInterrupted);
    for (const WorkerState& worker : ready.workers) EXPECT_TRUE(is_gone(worker.pid));
}

TEST_F(SupervisorTest, AKilledEngineIsBackOnItsPort) {
    on_ready = [this] { ::kill(ready.workers[0].pid, SIGKILL); };
    on_restart = [] { ask_to_stop(); };
    testing::internal::CaptureStderr();
    EXPECT_EQ(run().code, kDone);
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        HasSubstr("engine a-0 ended: killed by signal 9 (Killed); it starts again in 100ms"));
    ASSERT_EQ(restarts.size(), 1u);
    EXPECT_NE(restarts[0].workers[0].pid, ready.workers[0].pid);
    EXPECT_EQ(restarts[0].workers[0].url, ready.workers[0].url);
    EXPECT_EQ(restarts[0].workers[1], ready.workers[1]);
    EXPECT_EQ(restarts[0].gateway_pid, ready.gateway_pid);
}

TEST_F(SupervisorTest, AKilledGatewayIsBackOnItsPorts) {
    on_ready = [this] { ::kill(ready.gateway_pid, SIGKILL); };
    // Again: that it came up again shows in that it can be killed by its new pid.
    on_restart = [this] {
        if (restarts.size() == 2) return ask_to_stop();
        ::kill(restarts[0].gateway_pid, SIGKILL);
    };
    EXPECT_EQ(run().code, kDone);
    ASSERT_EQ(restarts.size(), 2u);
    EXPECT_NE(restarts[1].gateway_pid, ready.gateway_pid);
    EXPECT_EQ(restarts[1].url, ready.url);
    EXPECT_EQ(restarts[1].admin, ready.admin);
    EXPECT_EQ(restarts[1].workers, ready.workers);
}

TEST_F(SupervisorTest, CacheNodesAreThereBeforeTheEnginesWhichAreToldOfThem) {
    nodes = {{.name = "kv-0", .folder = "/f", .dram = "1GiB", .ssd = "2GiB", .retain = "agent=1h"}};
    testing::internal::CaptureStderr();
    EXPECT_EQ(run().code, kDone);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_EQ(ready.kv_nodes.size(), 1U);
    const KvNodeState& node = ready.kv_nodes[0];
    EXPECT_EQ(node.name, "kv-0");
    EXPECT_THAT(said, HasSubstr("kvnode with /f:2GiB"));
    EXPECT_THAT(said, HasSubstr("engine of " + node.url));
    EXPECT_THAT(said, HasSubstr("engine of dir:///shared"));
    EXPECT_THAT(said, HasSubstr("gateway of " + node.url + "," + node.http));
    EXPECT_EQ(progress.front(), "starting the cache, 0 of 1 nodes ready");
    EXPECT_EQ(ended(), "gateway\nengine\nengine\nkvnode\n");
    EXPECT_TRUE(is_gone(node.pid));
}

TEST_F(SupervisorTest, AKilledNodeIsBackOnItsPorts) {
    nodes = {{.name = "kv-0", .dram = "1GiB", .retain = "agent=1h"}};
    on_ready = [this] { ::kill(ready.kv_nodes[0].pid, SIGKILL); };
    on_restart = [this] {
        if (restarts.size() == 2) return ask_to_stop();
        ::kill(restarts[0].kv_nodes[0].pid, SIGKILL);
    };
    EXPECT_EQ(run().code, kDone);
    ASSERT_EQ(restarts.size(), 2U);
    EXPECT_NE(restarts[1].kv_nodes[0].pid, ready.kv_nodes[0].pid);
    EXPECT_EQ(restarts[1].kv_nodes[0].url, ready.kv_nodes[0].url);
    EXPECT_EQ(restarts[1].kv_nodes[0].http, ready.kv_nodes[0].http);
    EXPECT_EQ(restarts[1].workers, ready.workers);
}

TEST_F(SupervisorTest, WhatCannotStartEndsWithTheOneLineOfTheFirst) {
    const ServiceEnd end = run("missing");
    EXPECT_EQ(end.code, kCannotStart);
    EXPECT_EQ(end.complaint, "sluice: missing: no such file");
    EXPECT_EQ(ready, ServiceState{});
}

TEST_F(SupervisorTest, WhatEndsWithoutAWordIsNamed) {
    EXPECT_THAT(run("crash").complaint,
                testing::MatchesRegex("sluice: engine a-[01] ended before it was ready: "
                                      "killed by signal 9 .Killed."));
    const ServiceEnd quit = run("quitter");
    EXPECT_EQ(quit.code, kFailed);
    EXPECT_THAT(quit.complaint, HasSubstr("ended before it was ready: exit code 0"));
}

TEST_F(SupervisorTest, AProgramThatIsNotThereCannotStart) {
    const ServiceEnd end = run("good", {"/nowhere/sluice"});
    EXPECT_EQ(end.code, kCannotStart);
    EXPECT_EQ(end.complaint,
              "sluice: /nowhere/sluice: cannot start the program: No such file or directory");
}

TEST_F(SupervisorTest, AStopBeforeItIsReadyIsNoFailure) {
    // Seen by the first look at the signals, while the engines start.
    const Result<StopSignals> signals = StopSignals::take();
    Supervisor supervisor({.engines = {{.name = "a-0", .model = "never-ready"}}}, {}, *signals);
    ask_to_stop();
    const ServiceEnd end = supervisor.run();
    EXPECT_EQ(end.code, kDone);
    EXPECT_EQ(end.complaint, "");
}

}  // namespace
}  // namespace sluice::app
