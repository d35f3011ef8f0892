#pragma once

// A real redis-server for a test, on ports of its own, without files. Tests are skipped where there is
// none.

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "tests/kv/folder.h"
#include "tests/net/support.h"

namespace sluice::kvnode::testing {

/// Its path; empty if there is none. Debian's package redis-tools, which needs no daemon, has the
/// server, too: it is the program redis-check-rdb, which is what it is called.
inline std::string redis_server_program() {
    for (const char* path : {"/usr/bin/redis-server", "/usr/local/bin/redis-server"})
        if (std::filesystem::exists(path)) return path;
    constexpr const char* kByOtherName = "/usr/bin/redis-check-rdb";
    if (!std::filesystem::exists(kByOtherName)) return {};
    static const kv::testing::Folder folder;
    const std::filesystem::path path = folder.path() / "redis-server";
    if (!std::filesystem::exists(path)) std::filesystem::create_symlink(kByOtherName, path);
    return path.string();
}

/// A port that was free a moment ago.
inline std::uint16_t free_port() { return net::testing::RawListener().port(); }

class RedisProcess {
public:
    explicit RedisProcess(std::vector<std::string> options = {}) : options_(std::move(options)) {
        start();
    }

    /// Kills it without a word, as `kill -9` does.
    void kill() {
        process_->signal(SIGKILL);
        static_cast<void>(process_->wait(std::chrono::seconds(60)));
        process_.reset();
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::uint16_t bus_port() const { return bus_port_; }
    [[nodiscard]] std::string place() const { return "127.0.0.1:" + std::to_string(port_); }

    /// What it answers to a line; of texts the first line.
    [[nodiscard]] std::string ask(const std::string& line) const {
        net::testing::RawSocket socket(port_);
        return ask(socket, line);
    }
    /// The whole of a text.
    [[nodiscard]] std::string ask_text(const std::string& line) const {
        net::testing::RawSocket socket(port_);
        const std::string head = ask(socket, line);
        const std::size_t length = std::stoul(head.substr(1));
        std::string text = socket.read_until("\r\n");
        while (text.size() < length) text += socket.read_until("\r\n");
        return text;
    }

private:
    static std::string ask(net::testing::RawSocket& socket, const std::string& line) {
        EXPECT_TRUE(socket.send(line + "\r\n"));
        std::string reply = socket.read_until("\r\n");
        if (reply.ends_with("\r\n")) reply.resize(reply.size() - 2);
        return reply;
    }

    void start() {
        // Somebody else may take the port before the server does.
        for (int tries = 0; tries < 5 && process_ == nullptr; ++tries) {
            port_ = free_port();
            bus_port_ = free_port();
            std::vector<std::string> command{redis_server_program(),
                                             "--port",
                                             std::to_string(port_),
                                             "--bind",
                                             "127.0.0.1",
                                             "--save",
                                             "",
                                             "--dir",
                                             folder_.path().string(),
                                             "--logfile",
                                             "log"};
            if (has("--tls-cert-file")) {
                command[1] = "--tls-port";
                command.insert(command.end(), {"--port", "0"});
            }
            for (const std::string& option : options_) command.push_back(option);
            if (has("--cluster-enabled")) {
                command.emplace_back("--cluster-port");
                command.push_back(std::to_string(bus_port_));
            }
            auto spawned = Subprocess::spawn({.argv = command});
            ASSERT_TRUE(spawned.has_value()) << spawned.error().to_string();
            process_ = std::make_unique<Subprocess>(*std::move(spawned));
            while (!process_->poll() && !answers()) std::this_thread::yield();
            if (process_->poll()) process_.reset();
        }
        ASSERT_NE(process_, nullptr) << "redis-server doesn't start";
    }

    [[nodiscard]] bool has(std::string_view option) const {
        return std::ranges::find(options_, option) != options_.end();
    }

    [[nodiscard]] bool answers() const {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port_);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const bool there =
            ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        ::close(fd);
        return there;
    }

    const std::vector<std::string> options_;
    kv::testing::Folder folder_;
    std::uint16_t port_ = 0;
    std::uint16_t bus_port_ = 0;
    std::unique_ptr<Subprocess> process_;
};

/// Two servers in cluster mode that know of each other, each with half of the slots.
class RedisPair {
public:
    RedisPair() {
        EXPECT_EQ(first.ask("CLUSTER ADDSLOTSRANGE 0 8191"), "+OK");
        EXPECT_EQ(second.ask("CLUSTER ADDSLOTSRANGE 8192 16383"), "+OK");
        EXPECT_EQ(first.ask("CLUSTER MEET 127.0.0.1 " + std::to_string(second.port()) + " " +
                            std::to_string(second.bus_port())),
                  "+OK");
        for (const RedisProcess* server : {&first, &second})
            while (server->ask_text("CLUSTER INFO").find("cluster_state:ok") == std::string::npos ||
                   server->ask_text("CLUSTER INFO").find("cluster_known_nodes:2") ==
                       std::string::npos) {
                std::this_thread::yield();
            }
    }

    RedisProcess first{kOptions};
    RedisProcess second{kOptions};

private:
    inline static const std::vector<std::string> kOptions{"--cluster-enabled", "yes",
                                                          "--cluster-require-full-coverage", "no"};
};

}  // namespace sluice::kvnode::testing
