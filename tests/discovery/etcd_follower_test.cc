#include "discovery/etcd_follower.h"

#include <gmock/gmock.h>

#include "net/http_server.h"

namespace sluice::discovery {
namespace {

using testing::ElementsAre;

class EtcdFollowerTest : public testing::Test {
protected:
    EtcdFollowerTest() : client(loop) {
        server = *net::HttpServer::listen(
            loop, {}, [this](const std::shared_ptr<net::HttpExchange>& exchange) {
                ++asked;
                EXPECT_EQ(exchange->request().path, "/v3/kv/range");
                exchange->respond(net::HttpResponse::json(status, body));
            });
    }
    void run_until(const std::function<bool()>& condition) {
        for (int turns = 0; !condition(); ++turns) {
            ASSERT_LT(turns, 30'000) << "what was waited for did not happen";
            loop.run_for(std::chrono::milliseconds(1));
        }
    }
    EtcdFollower follow(std::vector<std::string> endpoints) {
        return {loop,
                client,
                {.endpoints = std::move(endpoints), .prefix = "/p/"},
                [this](const std::vector<WorkerEntry>& workers) { sets.push_back(workers); }};
    }
    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server->port());
    }
    static std::string with(const WorkerEntry& worker) {
        return R"({"header":{"revision":"5"},"count":"1","kvs":[{"key":"L3AvYQ==","value":")" +
               to_base64(to_json(worker)) + R"("}]})";
    }

    net::EventLoop loop;
    net::HttpClient client;
    std::unique_ptr<net::HttpServer> server;
    int asked = 0;
    int status = 200;
    std::string body;
    std::vector<std::vector<WorkerEntry>> sets;
    const WorkerEntry worker{"stable", "http://w:1"};
};

TEST_F(EtcdFollowerTest, WhatItSaysIsTheSet) {
    body = with(worker);
    EtcdFollower follower = follow({url()});
    follower.start();
    run_until([&] { return sets.size() == 1; });
    EXPECT_THAT(sets[0], ElementsAre(worker));
    EXPECT_TRUE(follower.answers());
}

TEST_F(EtcdFollowerTest, AnErrorChangesNothingAndItIsAskedAgain) {
    status = 503;
    EtcdFollower follower = follow({url()});
    follower.start();
    run_until([&] { return asked == 2; });
    EXPECT_FALSE(follower.answers());
    EXPECT_TRUE(sets.empty());
    status = 200;
    body = with(worker);
    run_until([&] { return sets.size() == 1; });
    EXPECT_TRUE(follower.answers());
}

TEST_F(EtcdFollowerTest, AnotherAddressIsAskedWhereOneDoesNotAnswer) {
    body = with(worker);
    EtcdFollower follower = follow({"http://127.0.0.1:1", url()});
    follower.start();
    run_until([&] { return sets.size() == 1; });
    EXPECT_THAT(sets[0], ElementsAre(worker));
}

}  // namespace
}  // namespace sluice::discovery
