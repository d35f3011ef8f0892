// Announcers against a gateway and an etcd whose answers a test writes.

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "discovery/etcd_announcer.h"
#include "discovery/etcd_codec.h"
#include "discovery/http_announcer.h"
#include "net/http_server.h"

namespace sluice::discovery {
namespace {

namespace json = boost::json;
using testing::ElementsAre;

class AnnouncerTest : public testing::Test {
protected:
    AnnouncerTest() : client(loop) {
        server = *net::HttpServer::listen(
            loop, {}, [this](const std::shared_ptr<net::HttpExchange>& exchange) {
                const net::HttpRequest& request = exchange->request();
                asked.push_back(request.method + " " + request.path);
                bodies.push_back(request.body);
                keys.emplace_back(request.headers.find("authorization").value_or(""));
                exchange->respond(answer(asked.back()));
            });
    }

    void run_until(const std::function<bool()>& condition) {
        for (int turns = 0; !condition(); ++turns) {
            ASSERT_LT(turns, 30'000) << "what was waited for did not happen";
            loop.run_for(std::chrono::milliseconds(1));
        }
    }
    void withdraw(Announcer& announcer) {
        bool done = false;
        announcer.withdraw([&] { done = true; });
        run_until([&] { return done; });
    }
    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server->port());
    }
    [[nodiscard]] json::object body(std::size_t i) const {
        return json::parse(bodies[i]).as_object();
    }

    net::EventLoop loop;
    net::HttpClient client;
    std::unique_ptr<net::HttpServer> server;
    std::vector<std::string> asked;
    std::vector<std::string> bodies;
    std::vector<std::string> keys;
    std::function<net::HttpResponse(const std::string&)> answer;
    const Announcement announcement{.worker = {"stable", "http://w:1", routing::LegPhase::kDecode},
                                    .lease = std::chrono::seconds(1)};
};

TEST_F(AnnouncerTest, AGatewayIsToldAgainAndAgainAndInTheEndThatItIsOver) {
    answer = [](const std::string&) {
        return net::HttpResponse::json(200, R"({"name":"stable-decode-0"})");
    };
    HttpAnnouncer announcer(loop, client, url(), "secret", announcement);
    announcer.start();
    run_until([&] { return asked.size() == 3; });
    EXPECT_THAT(asked, ElementsAre("POST /workers", "POST /workers", "POST /workers"));
    EXPECT_EQ(body(0), json::parse(R"({"url":"http://w:1","pool":"stable","phase":"decode",)"
                                   R"("lease_s":1})")
                           .as_object());
    EXPECT_EQ(keys[0], "Bearer secret");
    withdraw(announcer);
    EXPECT_EQ(asked.back(), "DELETE /workers/stable-decode-0");
}

TEST_F(AnnouncerTest, AGatewayThatRefusesIsAskedAgain) {
    answer = [this](const std::string&) {
        if (asked.size() == 1)
            return net::HttpResponse::json(404, R"({"error":{"message":"no such pool"}})");
        return net::HttpResponse::json(200, R"({"name":"stable-0"})");
    };
    HttpAnnouncer announcer(loop, client, url(), "", announcement);
    announcer.start();
    run_until([&] { return asked.size() == 2; });
    EXPECT_EQ(keys[0], "");
}

TEST_F(AnnouncerTest, OneThatWasNeverTakenHasNothingToTakeBack) {
    answer = [](const std::string&) { return net::HttpResponse::json(503, "{}"); };
    HttpAnnouncer announcer(loop, client, url(), "", announcement);
    announcer.start();
    run_until([&] { return asked.size() == 1; });
    withdraw(announcer);
    EXPECT_EQ(asked.size(), 1U);
}

TEST_F(AnnouncerTest, EtcdGetsAKeyOnALeaseThatIsKeptAlive) {
    int left = 1;
    answer = [&](const std::string& what) {
        if (what == "POST /v3/lease/grant") return net::HttpResponse::json(200, R"({"ID":"77"})");
        if (what == "POST /v3/lease/keepalive")
            return net::HttpResponse::json(200, left-- > 0 ? R"({"result":{"ID":"77","TTL":"1"}})"
                                                           : R"({"result":{"ID":"77"}})");
        return net::HttpResponse::json(200, "{}");
    };
    EtcdAnnouncer announcer(loop, client, {.endpoints = {url()}, .prefix = "/p/"}, announcement);
    announcer.start();
    // The second time the lease has ended: all begins anew.
    run_until([&] { return asked.size() == 6; });
    EXPECT_THAT(asked,
                ElementsAre("POST /v3/lease/grant", "POST /v3/kv/put", "POST /v3/lease/keepalive",
                            "POST /v3/lease/keepalive", "POST /v3/lease/grant", "POST /v3/kv/put"));
    EXPECT_EQ(from_base64(std::string(body(1).at("key").as_string())), "/p/stable/w:1");
    EXPECT_EQ(*parse_worker_json(*from_base64(std::string(body(1).at("value").as_string()))),
              announcement.worker);
    EXPECT_EQ(body(1).at("lease").as_string(), "77");
    withdraw(announcer);
    EXPECT_EQ(asked.back(), "POST /v3/lease/revoke");
}

TEST_F(AnnouncerTest, AnotherEtcdIsAskedWhereOneDoesNotAnswer) {
    answer = [](const std::string&) { return net::HttpResponse::json(200, R"({"ID":"77"})"); };
    // Nobody listens on the first.
    EtcdAnnouncer announcer(
        loop, client, {.endpoints = {"http://127.0.0.1:1", url()}, .prefix = "/p/"}, announcement);
    announcer.start();
    run_until([&] { return asked.size() == 2; });
    EXPECT_THAT(asked, ElementsAre("POST /v3/lease/grant", "POST /v3/kv/put"));
}

}  // namespace
}  // namespace sluice::discovery
