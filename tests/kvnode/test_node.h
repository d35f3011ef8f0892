#pragma once

// A cache node on a loop of its own, and a client that says one thing after the other.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kv/resp_writer.h"
#include "kvnode/node_http.h"
#include "kvnode/resp_server.h"
#include "tests/net/support.h"

namespace sluice::kvnode::testing {

class TestNode {
public:
    struct Options {
        std::size_t dram = 64 * 1024 * 1024;
        std::string ssd_dir{};  ///< Empty: no SSD.
        FaultPoints faults{};
        std::string password{};
        RespLimits limits{};
    };

    explicit TestNode(const Options& options) {
        loop_.call([&] { start(options); });
    }
    TestNode() : TestNode(Options{}) {}
    ~TestNode() {
        loop_.call([&] {
            http_.reset();
            resp_.reset();
            service_.reset();
            store_.reset();
        });
    }
    TestNode(const TestNode&) = delete;
    TestNode& operator=(const TestNode&) = delete;

    /// Until everything is on the SSD.
    void sync() {
        net::testing::Signal done;
        loop_.call([&] {
            store_->sync([&](const Result<void>& synced) {
                EXPECT_TRUE(synced);
                done.set();
            });
        });
        EXPECT_TRUE(done.wait());
    }
    template <class Work>
    auto call(Work work) {
        return loop_.call([&] { return work(*service_); });
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// Status line to the end of the body.
    std::string http(const std::string& method, const std::string& path,
                     const std::string& body = {}, const std::string& fields = {}) const {
        net::testing::RawSocket socket(http_port_);
        socket.send(method + " " + path + " HTTP/1.1\r\nHost: node\r\n" + fields +
                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        return socket.read_answer();
    }

private:
    void start(const Options& options) {
        NodeStore::Options store{
            .dram = {.bytes = options.dram, .tenant_bytes = 0, .retention = {}}};
        if (!options.ssd_dir.empty())
            store.ssd = kv::SsdOptions{.dir = options.ssd_dir, .bytes = 64 * 1024 * 1024};
        auto opened = NodeStore::open(loop_.loop(), std::move(store));
        ASSERT_TRUE(opened) << opened.error().to_string();
        store_ = std::move(*opened);
        service_ = std::make_unique<NodeService>(NodeService{
            .loop = loop_.loop(), .store = *store_, .faults = options.faults, .password = {}});
        if (!options.password.empty()) service_->password = sha256(options.password);
        auto resp = listen_resp(*service_, {}, options.limits);
        ASSERT_TRUE(resp);
        resp_ = std::move(*resp);
        auto http = NodeHttp::listen(*service_, {});
        ASSERT_TRUE(http);
        http_ = std::move(*http);
        port_ = resp_->port();
        http_port_ = http_->port();
    }

    net::testing::LoopThread loop_;
    std::unique_ptr<NodeStore> store_;
    std::unique_ptr<NodeService> service_;
    std::unique_ptr<net::TcpServer> resp_;
    std::unique_ptr<NodeHttp> http_;
    std::uint16_t port_ = 0;
    std::uint16_t http_port_ = 0;
};

using Words = std::vector<std::string>;

inline std::string encode(const Words& words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
        text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return text;
}

inline std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

class TestClient {
public:
    explicit TestClient(const TestNode& node) : socket_(node.port()) {}
    explicit TestClient(std::uint16_t port) : socket_(port) {}

    /// All that is answered to `text`; an echo behind it tells where that ends. What comes before the end
    /// of the connection, if it ends.
    std::string ask_raw(const std::string& text) {
        const std::string mark = "end of answer " + std::to_string(++asked_);
        socket_.send(text + encode({"ECHO", mark}));
        std::string answer = socket_.read_until(bulk(mark));
        if (answer.ends_with(bulk(mark))) answer.resize(answer.size() - bulk(mark).size());
        return answer;
    }
    std::string ask(const Words& words) { return ask_raw(encode(words)); }

    net::testing::RawSocket& socket() { return socket_; }

private:
    net::testing::RawSocket socket_;
    int asked_ = 0;
};

}  // namespace sluice::kvnode::testing
