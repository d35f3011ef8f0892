// `sluice kvnode`, the real program, and the real tools of Redis where they are.

#include <gmock/gmock.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/command.h"
#include "base/subprocess.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"
#include "tests/places.h"

namespace sluice::app {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds kLong(60'000);

class Node {
public:
    explicit Node(const Words& options) {
        Words words{std::string(kBinaryDir) + "/sluice", "kvnode", "--port", "0", "--json"};
        words.insert(words.end(), options.begin(), options.end());
        Pipe pipe = *make_pipe();
        process_ = Subprocess::spawn({.argv = words, .fds = {{pipe.write.get(), 1}}});
        EXPECT_TRUE(process_);
        pipe.write.reset();
        std::FILE* const output = ::fdopen(pipe.read.release(), "r");
        std::array<char, 1'024> line{};
        EXPECT_NE(std::fgets(line.data(), line.size(), output), nullptr);
        ready_ = line.data();
        std::fclose(output);
    }

    [[nodiscard]] const std::string& ready() const { return ready_; }
    [[nodiscard]] std::string port() const {
        const std::string before = "\"url\":\"redis://127.0.0.1:";
        const std::size_t at = ready_.find(before) + before.size();
        return ready_.substr(at, ready_.find('"', at) - at);
    }
    int stop() {
        process_->signal(SIGTERM);
        const auto ended = process_->wait(kLong);
        EXPECT_TRUE(ended);
        return ended && ended->kind == ExitStatus::Kind::kExited ? ended->value : -1;
    }

private:
    Result<Subprocess> process_ = std::unexpected(Error::invalid(""));
    std::string ready_;
};

/// What a program says.
std::string output_of(const Words& argv) {
    Pipe pipe = *make_pipe();
    auto process = Subprocess::spawn({.argv = argv, .fds = {{pipe.write.get(), 1}}});
    EXPECT_TRUE(process) << process.error().to_string();
    pipe.write.reset();
    std::FILE* const output = ::fdopen(pipe.read.release(), "r");
    std::string text;
    std::array<char, 4'096> part{};
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), output))
        text.append(part.data(), size);
    std::fclose(output);
    const auto ended = process->wait(kLong);
    EXPECT_TRUE(ended && ended->ok()) << argv[0] << ": " << text;
    return text;
}

bool there(const char* program) {
    return std::filesystem::exists(std::string("/usr/bin/") + program);
}

TEST(KvnodeTest, SaysWhereItIsAndFindsAgainWhatItHad) {
    if (!there("redis-cli")) GTEST_SKIP() << "no redis-cli (Debian: redis-tools)";
    const TemporaryFolder folder;
    const Words options{"--dram", "16MiB", "--ssd", folder.path() + "/ssd:64MiB"};
    {
        Node node(options);
        EXPECT_THAT(node.ready(), StartsWith(R"({"event":"ready","url":"redis://127.0.0.1:)"));
        EXPECT_THAT(node.ready(), HasSubstr(R"("http":"http://127.0.0.1:)"));
        EXPECT_EQ(output_of({"redis-cli", "-p", node.port(), "SET", "name", "kept"}), "OK\n");
        EXPECT_EQ(output_of({"redis-cli", "-3", "-p", node.port(), "GET", "name"}), "kept\n");
        EXPECT_EQ(node.stop(), kDone);
    }
    Node node(options);
    EXPECT_EQ(output_of({"redis-cli", "-p", node.port(), "--scan"}), "name\n");
    EXPECT_EQ(output_of({"redis-cli", "-p", node.port(), "GET", "name"}), "kept\n");
    EXPECT_EQ(node.stop(), kDone);
}

TEST(KvnodeTest, RedisBenchmarkRunsThrough) {
    if (!there("redis-benchmark")) GTEST_SKIP() << "no redis-benchmark (Debian: redis-tools)";
    Node node({"--dram", "32MiB"});
    const std::string said =
        output_of({"redis-benchmark", "-p", node.port(), "-t", "ping,set,get,incr", "-n", "2000",
                   "-P", "8", "-d", "20000", "--csv"});
    EXPECT_THAT(said, HasSubstr("\"SET\""));
    EXPECT_THAT(said, HasSubstr("\"GET\""));
    EXPECT_THAT(said, HasSubstr("\"INCR\""));
    EXPECT_EQ(node.stop(), kDone);
}

TEST(KvnodeTest, WrongUseIsSaidBeforeAnythingStarts) {
    const TemporaryFolder folder;
    const TemporaryFile empty("\n");
    const auto run = [](Words words) {
        words.insert(words.begin(), {"kvnode", "--port", "0"});
        return run_sluice(words);
    };
    for (const Words& words : std::vector<Words>{{"--dram", "much"},
                                                 {"--dram", "1KiB"},
                                                 {"--ssd", "/no/size"},
                                                 {"--ssd", folder.path() + ":x"},
                                                 {"--retain", "agent=x"},
                                                 {"--tls-cert", "/cert.pem"}}) {
        const Outcome refused = run(words);
        EXPECT_EQ(refused.code, kWrongUse) << words[0] << " " << words[1];
        EXPECT_THAT(refused.err, HasSubstr(words[0]));
    }
    const Outcome no_file = run({"--dram", "1000TiB", "--ssd", folder.path() + "/new:1001TiB",
                                 "--tls-cert", "/none.pem", "--tls-key", "/none.key"});
    EXPECT_EQ(no_file.code, kCannotStart);
    EXPECT_THAT(no_file.err, HasSubstr("/none.pem"));
    EXPECT_THAT(no_file.err, HasSubstr("No such file or directory"));
    EXPECT_THAT(no_file.err, ContainsRegex("--dram may take 1024000.0 GiB, .* has .* of memory"));
    EXPECT_THAT(no_file.err, ContainsRegex("--ssd may take 1025024.0 GiB, .*/new has .* GiB"));
    const Outcome open = run({"--bind", "0.0.0.0"});
    EXPECT_EQ(open.code, kCannotStart);
    EXPECT_THAT(open.err, HasSubstr("--password-file"));
    EXPECT_EQ(run({"--password-file", empty.path()}).code, kCannotStart);
    EXPECT_EQ(run({"--ssd", "/proc/none:64MiB"}).code, kCannotStart);
}

}  // namespace
}  // namespace sluice::app
