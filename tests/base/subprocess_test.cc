#include "base/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>

namespace sluice {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong(20'000);

std::string read_all(int fd) {
    std::string text;
    char buffer[256];
    ssize_t count = 0;
    while ((count = ::read(fd, buffer, sizeof buffer)) > 0) {
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
}

/// Runs a shell line and returns what it printed.
std::string run_shell(const std::string& line, SpawnOptions options = {}) {
    Pipe pipe = *make_pipe();
    options.argv = {"sh", "-c", line};
    options.fds.push_back({pipe.write.get(), 1});
    auto child = Subprocess::spawn(options);
    EXPECT_TRUE(child) << child.error().to_string();
    pipe.write.reset();
    std::string text = read_all(pipe.read.get());
    EXPECT_TRUE(child->wait(kLong));
    return text;
}

TEST(SubprocessTest, AnExitCodeArrives) {
    auto child = Subprocess::spawn({.argv = {"sh", "-c", "exit 3"}});
    ASSERT_TRUE(child);
    EXPECT_EQ(child->wait(kLong), (ExitStatus{ExitStatus::Kind::kExited, 3}));
    EXPECT_EQ(child->poll()->describe(), "exit code 3");
}

TEST(SubprocessTest, AKilledChildIsToldFromAFailedOne) {
    auto child = Subprocess::spawn({.argv = {"sleep", "1000"}});
    ASSERT_TRUE(child);
    EXPECT_EQ(child->poll(), std::nullopt);
    child->signal(SIGKILL);
    EXPECT_EQ(child->wait(kLong)->describe(), "killed by signal 9 (Killed)");
    child->signal(SIGTERM);  // Too late, and to nobody.
}

TEST(SubprocessTest, AProgramThatIsNotThereIsAnErrorThatNamesIt) {
    const auto child = Subprocess::spawn({.argv = {"/nowhere/sluice"}});
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().to_string(),
              "/nowhere/sluice: cannot start the program: No such file or directory");
}

TEST(SubprocessTest, ThePidfdBecomesReadableAtTheEnd) {
    auto child = Subprocess::spawn({.argv = {"true"}});
    ASSERT_TRUE(child);
    pollfd readable{.fd = child->pidfd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&readable, 1, static_cast<int>(kLong.count())), 1);
    EXPECT_TRUE(child->poll()->ok());
}

TEST(SubprocessTest, OutputAndEnvironmentAreTheOnesAsked) {
    EXPECT_EQ(run_shell("printf %s \"$A\"", {.extra_environment = {"A=1"}}), "1");
    EXPECT_EQ(run_shell("printf %s \"$A$B\"", {.environment = {{"A=1", "PATH=/usr/bin:/bin"}},
                                               .extra_environment = {"A=2", "B=3"}}),
              "23");
}

TEST(SubprocessTest, SwappedDescriptorsArriveSwapped) {
    Pipe three = *make_pipe();
    Pipe four = *make_pipe();
    // Each one's target is the other's source.
    const int a = three.write.get();
    const int b = four.write.get();
    auto child = Subprocess::spawn(
        {.argv = {"sh", "-c",
                  "echo to-a >&" + std::to_string(b) + "; echo to-b >&" + std::to_string(a)},
         .fds = {{a, b}, {b, a}}});
    ASSERT_TRUE(child);
    three.write.reset();
    four.write.reset();
    EXPECT_EQ(read_all(three.read.get()), "to-a\n");
    EXPECT_EQ(read_all(four.read.get()), "to-b\n");
}

TEST(SubprocessTest, AChildGetsNoOtherDescriptor) {
    const UniqueFd leaky(::open("/dev/null", O_RDONLY));  // NOLINT: not close-on-exec, on purpose.
    const std::string script =
        "test -e /proc/self/fd/" + std::to_string(leaky.get()) + " || echo none";
    EXPECT_EQ(run_shell(script), "none\n");
}

TEST(SubprocessTest, ADestroyedOwnerLeavesNoChild) {
    pid_t pid = 0;
    {
        auto child = Subprocess::spawn({.argv = {"sleep", "1000"}});
        ASSERT_TRUE(child);
        pid = child->pid();
    }
    EXPECT_EQ(::kill(pid, 0), -1);
    EXPECT_EQ(errno, ESRCH);
}

TEST(SubprocessTest, AMovedChildHasOneOwner) {
    auto first = Subprocess::spawn({.argv = {"sleep", "1000"}});
    ASSERT_TRUE(first);
    Subprocess second = std::move(*first);
    EXPECT_EQ(second.poll(), std::nullopt);
    second = std::move(*Subprocess::spawn({.argv = {"true"}}));
    EXPECT_TRUE(second.wait(kLong)->ok());
}

TEST(SubprocessTest, StopAsksFirstAndKillsAfterTheGrace) {
    auto polite = Subprocess::spawn({.argv = {"sleep", "1000"}});
    EXPECT_EQ(polite->stop(kLong), (ExitStatus{ExitStatus::Kind::kSignalled, SIGTERM}));

    Pipe pipe = *make_pipe();
    auto deaf = Subprocess::spawn({.argv = {"sh", "-c", "trap '' TERM; echo up; exec sleep 1000"},
                                   .fds = {{pipe.write.get(), 1}}});
    ASSERT_TRUE(deaf);
    char up = 0;
    ASSERT_EQ(::read(pipe.read.get(), &up, 1), 1);
    EXPECT_EQ(deaf->stop(milliseconds(20)), (ExitStatus{ExitStatus::Kind::kSignalled, SIGKILL}));
}

// A middle process spawns a child and is killed without a chance to clean up.
TEST(SubprocessTest, AChildDiesWithAParentThatIsKilled) {
    Pipe ready = *make_pipe();
    Pipe alive = *make_pipe();  // Its write end is held by the grandchild alone.
    const pid_t middle = ::fork();
    if (middle == 0) {
        auto child =
            Subprocess::spawn({.argv = {"sleep", "1000"}, .fds = {{alive.write.get(), 9}}});
        alive.write.reset();
        if (!child || ::write(ready.write.get(), "x", 1) != 1) ::_exit(1);
        ::pause();
        ::_exit(1);
    }
    alive.write.reset();
    char byte = 0;
    ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
    ::kill(middle, SIGKILL);
    ::waitpid(middle, nullptr, 0);
    EXPECT_EQ(::read(alive.read.get(), &byte, 1), 0);  // End of file: the grandchild is gone.
}

TEST(SubprocessTest, ABlockedSignalIsNotBlockedInTheChild) {
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    auto child = Subprocess::spawn({.argv = {"sleep", "1000"}});
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ASSERT_TRUE(child);
    EXPECT_EQ(child->stop(kLong), (ExitStatus{ExitStatus::Kind::kSignalled, SIGTERM}));
}

}  // namespace
}  // namespace sluice
