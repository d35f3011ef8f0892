#include "app/supervisor_child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>

#include <csignal>

#include "app/supervisor_relay.h"
#include "base/limits.h"

namespace sluice::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> cut(const std::vector<std::string>& pieces) {
    std::vector<std::string> lines;
    const auto keep = [&lines](std::string_view line) { lines.emplace_back(line); };
    LineCutter cutter;
    for (const std::string& piece : pieces) cutter.feed(piece, keep);
    cutter.finish(keep);
    return lines;
}

TEST(SupervisorChildTest, LinesAreTheSameHoweverTheBytesArrive) {
    EXPECT_THAT(cut({"one\ntwo\n\nthree"}), ElementsAre("one", "two", "", "three"));
    EXPECT_THAT(cut({"o", "ne\nt", "wo", "\n", "\nthree"}), ElementsAre("one", "two", "", "three"));
}

TEST(SupervisorChildTest, ALineThatNeverEndsTakesNoMoreThanItsLimit) {
    const std::string half(limits::kChildLineBytes / 2, 'x');
    const auto lines = cut({half, half, half, "\nnext\n"});
    EXPECT_EQ(lines[0].size(), limits::kChildLineBytes);
    EXPECT_EQ(lines[1], "next");
}

TEST(SupervisorChildTest, EventsAreToldFromOtherLines) {
    EXPECT_EQ(parse_child_line(R"({"event":"ready","url":"http://127.0.0.1:1","pid":7})"),
              (ChildEvent{ChildEvent::Kind::kReady, "http://127.0.0.1:1", ""}));
    EXPECT_EQ(parse_child_line(R"({"event":"listening","url":"u","admin":"a","pid":7})"),
              (ChildEvent{ChildEvent::Kind::kListening, "u", "a"}));
    EXPECT_EQ(parse_child_line(R"({"event":"ready","url":"redis://h:1","http":"http://h:2"})"),
              (ChildEvent{ChildEvent::Kind::kReady, "redis://h:1", "", "http://h:2"}));
    for (const char* line : {"", "ready", "{", "[]", "{}", R"({"event":"ready"})",
                             R"({"event":"step","url":"u"})", R"({"event":1,"url":"u"})"}) {
        EXPECT_EQ(parse_child_line(line), std::nullopt) << line;
    }
}

struct Writer {
    explicit Writer(const std::string& script)
        : child(*SupervisedChild::start(
              {"sh", "-c", script},
              {.on_event = [this](const ChildEvent& event) { urls.push_back(event.url); },
               .on_log_line = [this](std::string_view line) { logged.emplace_back(line); }})) {}

    ExitStatus wait() {
        pollfd ended{.fd = child.pidfd(), .events = POLLIN, .revents = 0};
        while (::poll(&ended, 1, -1) != 1) {
        }
        return *child.poll();
    }

    std::vector<std::string> urls;
    std::vector<std::string> logged;
    SupervisedChild child;
};

TEST(SupervisorChildTest, EverythingItWroteArrivesBeforeItsEnd) {
    Writer writer(R"(echo '{"event":"ready","url":"u"}'; echo log >&2; printf last >&2; exit 4)");
    EXPECT_EQ(writer.wait(), (ExitStatus{ExitStatus::Kind::kExited, 4}));
    EXPECT_THAT(writer.urls, ElementsAre("u"));
    EXPECT_THAT(writer.logged, ElementsAre("log", "last"));
}

TEST(SupervisorChildTest, ComplaintsAreKeptUntilItIsReady) {
    const std::string script = "echo loading >&2; echo 'sluice: no such file' >&2; exit 3";
    Writer starting(script);
    starting.wait();
    EXPECT_THAT(starting.logged, ElementsAre("loading"));
    EXPECT_EQ(starting.child.complaints(), "sluice: no such file");

    Writer ready(script);
    ready.child.now_ready();
    ready.wait();
    EXPECT_THAT(ready.logged, ElementsAre("loading", "sluice: no such file"));
}

TEST(SupervisorChildTest, AReaderThatDoesNotReadHoldsNobodyUp) {
    Pipe pipe = *make_pipe();
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    LineRelay relay(pipe.write.get());
    EXPECT_TRUE(relay.idle());
    const std::string line(1000, 'x');
    for (int i = 0; i < 1000; ++i) {
        relay.add(line);
        relay.flush();
    }
    EXPECT_TRUE(relay.pending());
    EXPECT_FALSE(relay.idle());

    std::string read;
    const auto read_all = [&] {
        char buffer[4096];
        ssize_t count = 0;
        while ((count = ::read(pipe.read.get(), buffer, sizeof buffer)) > 0) {
            read.append(buffer, static_cast<std::size_t>(count));
        }
    };
    const auto drain = [&] {
        while (relay.pending()) {
            read_all();
            relay.flush();
        }
        read_all();
    };
    drain();
    relay.add("after");
    drain();
    EXPECT_LT(read.size(), 1000 * line.size());
    EXPECT_THAT(read, HasSubstr(" lines dropped, nobody read them)\nafter\n"));
}

TEST(SupervisorChildTest, AReaderThatIsGoneHoldsNobodyUpEither) {
    Pipe pipe = *make_pipe();
    pipe.read.reset();
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    LineRelay relay(pipe.write.get());
    relay.add("line");
    relay.finish();
    EXPECT_FALSE(relay.pending());
    std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace sluice::app
