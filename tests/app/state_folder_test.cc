#include "app/state_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "base/subprocess.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;

const ServiceState kState{
    .url = "http://127.0.0.1:8080",
    .admin = "http://127.0.0.1:8081",
    .pid = 5,
    .gateway_pid = 6,
    .workers = {{"stable-0", "http://127.0.0.1:9000", 7}},
    .kv_nodes = {{"kv-0", "redis://127.0.0.1:7301", "http://127.0.0.1:7401", 8}}};

/// Another process that holds the lock, until it is killed or the test ends.
class OtherHolder {
public:
    explicit OtherHolder(const StateFolder& folder) {
        Pipe ready = *make_pipe();
        pid_ = ::fork();
        if (pid_ == 0) {
            const auto lock = StateLock::acquire(folder);
            if (!lock || !lock->write_state(kState)) ::_exit(1);
            [[maybe_unused]] const ssize_t count = ::write(ready.write.get(), "x", 1);
            for (;;) ::pause();
        }
        ready.write.reset();
        char byte = 0;
        EXPECT_EQ(::read(ready.read.get(), &byte, 1), 1);
    }
    ~OtherHolder() { kill(); }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    pid_t pid_ = 0;
};

/// Sets a variable, or removes it, for a scope.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* const before = std::getenv(name)) before_ = before;
        set(value);
    }
    ~Variable() { set(before_ ? before_->c_str() : nullptr); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    void set(const char* value) const {
        value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1);
    }
    const char* name_;
    std::optional<std::string> before_;
};

TEST(StateFolderTest, TheFolderIsTheChosenOneOrTheUsersOwn) {
    EXPECT_EQ(StateFolder::find("/x/./y")->path(), "/x/y");
    EXPECT_EQ(StateFolder::find("here")->path(), fs::current_path().string() + "/here");
    const Variable home("HOME", "/home/me");
    {
        const Variable state("XDG_STATE_HOME", "/state");
        EXPECT_EQ(StateFolder::find("")->path(), "/state/sluice");
    }
    const Variable no_state("XDG_STATE_HOME", nullptr);
    EXPECT_EQ(StateFolder::find("")->path(), "/home/me/.local/state/sluice");
    const Variable no_home("HOME", nullptr);
    EXPECT_EQ(StateFolder::find("").error().code(), ErrorCode::kNotFound);
}

TEST(StateFolderTest, TheKernelNamesTheHolderAndForgetsOneThatWasKilled) {
    const TemporaryFolder home;
    const StateFolder folder = *StateFolder::find(home.path() + "/deep/state");
    EXPECT_EQ(folder.holder(), std::nullopt);
    OtherHolder other(folder);
    EXPECT_EQ(folder.holder(), other.pid());
    EXPECT_EQ(StateLock::acquire(folder).error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(folder.read_state().value(), kState);

    other.kill();
    EXPECT_EQ(folder.holder(), std::nullopt);
    const auto lock = StateLock::acquire(folder);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(folder.read_state()) << "the dead one's state";
}

TEST(StateFolderTest, TheEndOfTheLockLeavesNeitherLockNorState) {
    const TemporaryFolder home;
    const StateFolder folder = *StateFolder::find(home.path());
    {
        auto first = StateLock::acquire(folder);
        ASSERT_TRUE(first);
        const StateLock moved = std::move(*first);
        ASSERT_TRUE(moved.write_state(kState));
        EXPECT_EQ(folder.read_state().value(), kState);
    }
    EXPECT_TRUE(fs::is_empty(home.path()));
}

TEST(StateFolderTest, TheFolderIsItsOwnersAlone) {
    const TemporaryFolder home;
    const StateFolder folder = *StateFolder::find(home.path() + "/state");
    const auto lock = StateLock::acquire(folder);
    ASSERT_TRUE(lock);
    struct stat found{};
    ::stat(folder.path().c_str(), &found);
    EXPECT_EQ(found.st_mode & 0777, 0700u);
}

TEST(StateFolderTest, AFolderThatCannotBeIsAnErrorThatNamesIt) {
    const auto lock = StateLock::acquire(*StateFolder::find("/proc/nowhere"));
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().code(), ErrorCode::kIo);
    EXPECT_EQ(lock.error().place(), "/proc/nowhere");
}

TEST(StateFolderTest, TheStateReadsBackAndNothingElseDoes) {
    EXPECT_EQ(parse_service_state(to_json(kState)).value(), kState);
    for (const char* text : {"", "{}", "[]", R"({"url":1})", "{\"url\":"}) {
        EXPECT_FALSE(parse_service_state(text)) << text;
    }
    EXPECT_EQ(
        to_json(kState),
        R"({"event":"ready","url":"http://127.0.0.1:8080","admin":"http://127.0.0.1:8081",)"
        R"("pid":5,"gateway":{"pid":6},"workers":[{"name":"stable-0",)"
        R"("url":"http://127.0.0.1:9000","pid":7,"phase":"full"}],"kv_nodes":[{"name":"kv-0","url":"redis://127.0.0.1:7301","http":"http://127.0.0.1:7401","pid":8}]})");
    EXPECT_EQ(ready_line(kState), "ready on http://127.0.0.1:8080 (admin http://127.0.0.1:8081)");
}

}  // namespace
}  // namespace sluice::app
