// The cache at the admin address, over sockets: a worker and a node that answer as a test tells them to.

#include "gateway/kv_console.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "gateway/block_chain.h"
#include "kv/block_name.h"
#include "net/query.h"
#include "port/kv_orders.h"
#include "port/kv_status.h"
#include "tests/app/temporary_folder.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The HTTP side of a cache node, or of a worker's cache.
class FakeHolder {
public:
    explicit FakeHolder(net::EventLoop& loop) {
        server_ =
            *net::HttpServer::listen(loop, {}, [this](const auto& exchange) { answer(*exchange); });
    }

    /// True if it was one of the cache's paths.
    bool answer(net::HttpExchange& exchange) {
        const net::HttpRequest& request = exchange.request();
        if (request.path == "/health") {
            exchange.respond(net::HttpResponse::json(200, "{}"));
            return true;
        }
        if (!request.path.starts_with("/kv/")) {  // It tells no events.
            exchange.respond(net::HttpResponse::json(404, "{}"));
            return true;
        }
        if (request.path == "/kv/bounds") {
            bounds.push_back(*port::parse_kv_bounds_order(request.body));
            exchange.respond(net::HttpResponse::json(200, "{}"));
            return true;
        }
        asked.push_back(request.path + " " + request.body);
        authorization = std::string(request.headers.find("Authorization").value_or(""));
        if (request.path == "/kv/status") {
            exchange.respond(net::HttpResponse::json(200, to_json(status)));
        } else if (request.path == "/kv/nodes") {
            orders.push_back(*port::parse_kv_nodes_order(request.body));
            exchange.respond(net::HttpResponse::json(nodes_status, "{}"));
        } else {
            exchange.respond(net::HttpResponse::json(200, to_json(result)));
        }
        return true;
    }

    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server_->port());
    }

    port::KvStatus status;
    port::KvOrderResult result;
    int nodes_status = 200;
    std::string authorization;  ///< Of the last question.
    std::vector<std::string> asked;
    std::vector<port::KvNodesOrder> orders;
    std::vector<port::KvBoundsOrder> bounds;

private:
    std::unique_ptr<net::HttpServer> server_;
};

class KvConsoleTest : public GatewayTest {
protected:
    void start_with(std::vector<KvNode> nodes = {}) {
        GatewayOptions options;
        options.kv_nodes = std::move(nodes);
        options.kv_members_file = folder_.path() + "/kv_nodes.json";
        options.caches = {{"private", {.share = PrefixShare::kUser}},
                          {"greedy", {.bytes = 1'000'000}}};
        options.kv_bounds_pace = std::chrono::milliseconds(20);
        worker = std::make_unique<FakeWorker>(loop, std::vector{says("Paris.")});
        worker->info.kv_components = {{.name = "mla"}};
        worker->info.block_tokens = 16;
        worker->on_kv = [this](net::HttpExchange& exchange) { cache.answer(exchange); };
        start_gateway(std::move(options));
        run_until([this] { return get("/ready").status == 200; });
    }

    Reply admin(std::string method, const std::string& path, std::string body = {}) {
        return send(std::move(method), path, std::move(body), {}, gateway->admin_port());
    }

    [[nodiscard]] KvNode node() const {
        return {.url = "redis://127.0.0.1:7301", .http = node_.url()};
    }

    FakeHolder cache{loop};  ///< The worker's.
    FakeHolder node_{loop};
    app::TemporaryFolder folder_;
};

TEST_F(KvConsoleTest, AWorkerIsToldOfTheNodesUntilItFollowsThem) {
    cache.nodes_status = 503;
    start_with({node()});
    run_until([&] { return cache.orders.size() >= 2; });
    EXPECT_EQ(cache.orders[0].epoch, 1U);
    EXPECT_THAT(cache.orders[0].nodes, ElementsAre("redis://127.0.0.1:7301"));
    cache.nodes_status = 200;
    worker->kv_epoch = 1;
    const std::size_t told = cache.orders.size();
    // Two looks at its state later nothing more was said.
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    EXPECT_LE(cache.orders.size(), told + 1);
}

TEST_F(KvConsoleTest, ARestartedWorkerIsToldAnew) {
    start_with({node()});
    run_until([&] { return !cache.orders.empty(); });
    worker->kv_epoch = 1;
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    cache.orders.clear();
    worker->kv_epoch = 0;
    ++worker->pid;
    run_until([&] { return !cache.orders.empty(); });
    EXPECT_EQ(cache.orders[0].epoch, 1U);
}

TEST_F(KvConsoleTest, WithoutNodesAWorkerKeepsWhatItWasStartedWith) {
    start_with();
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    EXPECT_TRUE(cache.orders.empty());
    EXPECT_EQ(admin("GET", "/admin/kv/nodes").body, R"({"epoch":0,"members":[]})");
}

TEST_F(KvConsoleTest, NodesComeAndGoAndWorkersAreToldAtOnce) {
    start_with();
    const std::string url = "redis" + node_.url().substr(4);
    const Reply added = admin("POST", "/admin/kv/nodes",
                              R"({"url":")" + url + R"(","http":")" + node_.url() + R"("})");
    EXPECT_EQ(added.status, 200) << added.body;
    EXPECT_EQ(added.body, R"({"epoch":1,"members":[{"url":")" + url + R"(","http":")" +
                              node_.url() + R"(","foreign":false}],"unreachable":[]})");
    run_until([&] { return !cache.orders.empty(); });
    EXPECT_EQ(cache.orders.back(), (port::KvNodesOrder{.epoch = 1, .nodes = {url}}));
    worker->kv_epoch = 1;
    EXPECT_EQ(admin("POST", "/admin/kv/nodes", R"({"url":"redis://127.0.0.1:1"})").status, 200);
    const std::string gone = "/admin/kv/nodes?url=" + net::percent_encode(url);
    EXPECT_EQ(admin("DELETE", gone).body,
              R"({"epoch":3,"members":[{"url":"redis://127.0.0.1:1","foreign":true}]})");
    run_until([&] { return cache.orders.back().epoch == 3; });
    EXPECT_THAT(cache.orders.back().nodes, ElementsAre("redis://127.0.0.1:1"));
    EXPECT_EQ(admin("DELETE", gone).status, 404);
    EXPECT_EQ(admin("POST", "/admin/kv/nodes", R"({"url":"h:1"})").status, 400);
    EXPECT_EQ(admin("POST", "/admin/kv/nodes", "[]").status, 400);
    EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/kv_nodes.json"));
}

TEST_F(KvConsoleTest, WhoAddsANodeHearsWhereNobodyAnswers) {
    start_with();
    const json::value said = admin("POST", "/admin/kv/nodes",
                                   R"({"url":"redis://127.0.0.1:1","http":"http://127.0.0.1:2"})")
                                 .json();
    EXPECT_EQ(said.at("members").as_array().size(), 1U) << "it may come later";
    const json::array& unreachable = said.at("unreachable").as_array();
    ASSERT_EQ(unreachable.size(), 2U);
    std::string all = json::serialize(unreachable);
    EXPECT_THAT(all, HasSubstr("redis://127.0.0.1:1: "));
    EXPECT_THAT(all, HasSubstr("http://127.0.0.1:2: "));
    EXPECT_THAT(all, HasSubstr("Connection refused"));
}

TEST_F(KvConsoleTest, AWorkerThatFollowsANewerListIsOvertaken) {
    start_with({node()});
    run_until([&] { return !cache.orders.empty(); });
    worker->kv_epoch = 1;
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    cache.orders.clear();
    // Between two looks another gateway told it something.
    worker->kv_epoch = 40;
    cache.nodes_status = 409;
    EXPECT_EQ(admin("POST", "/admin/kv/nodes", R"({"url":"redis://127.0.0.1:1"})").status, 200);
    run_until([&] { return !cache.orders.empty() && cache.orders.back().epoch == 41; });
    EXPECT_THAT(cache.orders.back().nodes,
                ElementsAre("redis://127.0.0.1:7301", "redis://127.0.0.1:1"));
    cache.nodes_status = 200;
    worker->kv_epoch = 41;
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    EXPECT_EQ(admin("GET", "/admin/kv/nodes").json().at("epoch").to_number<int>(), 41);
    // What another gateway's list is now is not ours to undo.
    worker->kv_epoch = 50;
    run_until([&, seen = worker->looks] { return worker->looks >= seen + 2; });
    EXPECT_EQ(cache.orders.back().epoch, 41U);
}

TEST_F(KvConsoleTest, ANodeIsAskedWithItsPassword) {
    KvNode locked = node();
    locked.password_env = "KV_CONSOLE_TEST_PASSWORD";
    ::setenv("KV_CONSOLE_TEST_PASSWORD", "sesame", 1);
    start_with({locked});
    EXPECT_EQ(admin("POST", "/admin/kv/drop", R"({"tenant":"acme"})").status, 200);
    EXPECT_EQ(node_.authorization, "Bearer sesame");
    EXPECT_EQ(cache.authorization, "") << "it is no worker's concern";
    ::unsetenv("KV_CONSOLE_TEST_PASSWORD");
    EXPECT_EQ(admin("POST", "/admin/kv/nodes",
                    R"({"url":"redis://i:1","password_env":"KV_CONSOLE_TEST_PASSWORD"})")
                  .status,
              400);
}

TEST_F(KvConsoleTest, AllThatHoldBlocksAreToldWhatTenantsMayTakeAgainAndAgain) {
    start_with({node(), {.url = "redis://h:1", .http = "http://127.0.0.1:1"}});
    run_until([&] { return cache.bounds.size() >= 2 && node_.bounds.size() >= 2; });
    const port::KvBoundsOrder expected{.tenants = {{"greedy", 1'000'000}}};
    EXPECT_EQ(cache.bounds.back(), expected);
    EXPECT_EQ(node_.bounds.back(), expected);
}

TEST_F(KvConsoleTest, AStatusJoinsWorkersAndNodesAndNamesForeignOnesAsSuch) {
    cache.status = {.epoch = 1, .tiers = {{.tier = "dram", .bytes = 5, .hits = 3}}};
    node_.status = {.tiers = {{.tier = "ssd", .bytes = 7}}, .pinned = 2};
    start_with({node(),
                {.url = "redis://valkey:6379"},
                {.url = "redis://h:1", .http = "http://127.0.0.1:1"}});
    const Reply reply = admin("GET", "/admin/kv/status");
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json::value said = reply.json();
    EXPECT_EQ(said.at("epoch").to_number<int>(), 1);
    const json::array& holders = said.at("holders").as_array();
    ASSERT_EQ(holders.size(), 4U);
    EXPECT_EQ(holders[0].at("kind"), "worker");
    EXPECT_EQ(holders[0].at("name"), "stable-0");
    EXPECT_EQ(holders[0].at("status").at("tiers").at(0).at("hits").to_number<int>(), 3);
    EXPECT_EQ(holders[1].at("kind"), "node");
    EXPECT_EQ(holders[1].at("url"), "redis://127.0.0.1:7301");
    EXPECT_EQ(holders[1].at("status").at("pinned").to_number<int>(), 2);
    EXPECT_EQ(holders[2].at("foreign"), true);
    EXPECT_TRUE(holders[2].at("status").is_null());
    EXPECT_EQ(holders[3].at("foreign"), false);
    EXPECT_TRUE(holders[3].as_object().contains("error"));
}

TEST_F(KvConsoleTest, AnOrderGoesToAllAndTheirAnswersAreSummed) {
    cache.result = {.done = 2, .bytes = 10, .failed = 0};
    node_.result = {.done = 3, .bytes = 20, .failed = 1};
    start_with({node()});
    const Reply reply = admin("POST", "/admin/kv/drop", R"({"tenant":"acme","class":"chat"})");
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json().at("done").to_number<int>(), 5);
    EXPECT_EQ(reply.json().at("bytes").to_number<int>(), 30);
    EXPECT_EQ(reply.json().at("failed").to_number<int>(), 1);
    EXPECT_EQ(node_.asked.back(), R"(/kv/drop {"tenant":"acme","class":"chat"})");
    EXPECT_EQ(cache.asked.back(), node_.asked.back());
    EXPECT_EQ(admin("POST", "/admin/kv/drop", "{}").status, 400);
    EXPECT_EQ(admin("POST", "/admin/kv/verify").json().at("failed").to_number<int>(), 1);
    EXPECT_EQ(node_.asked.back(), "/kv/verify {}");
}

/// The keys that a pin order named, each once, whatever their class.
std::vector<kv::BlockKey> pinned_keys(const FakeHolder& holder, const std::string& tenant) {
    const std::string& asked = holder.asked.back();
    EXPECT_TRUE(asked.starts_with("/kv/pin "));
    std::vector<kv::BlockKey> keys;
    const port::KvPinOrder order = *port::parse_kv_pin_order(asked.substr(8));
    for (const std::string& name : order.names) {
        const auto block = kv::parse_block_name(name);
        EXPECT_TRUE(block) << name;
        EXPECT_EQ(block->tenant, tenant);
        if (block->retention == Retention::kChat) keys.push_back(block->key);
    }
    return keys;
}

const std::string kLong(600, 'x');

TEST_F(KvConsoleTest, ARequestsPromptIsPinnedByTheNamesItsWorkerGivesItsBlocks) {
    start_with({node()});
    ASSERT_EQ(chat("", {{"x-request-id", "mine"}}).status, 200);
    const std::string body =
        R"({"model":"krill","messages":[{"role":"user","content":")" + kLong + "\"}]}";
    ASSERT_EQ(send("POST", "/v1/chat/completions", body, {{"x-request-id", "long"}}).status, 200);
    const port::GenerateRequest& sent = worker->requests.back();
    const auto expected = kv::KeyChain(*block_root(worker->info), {.shared = sent.kv.salt,
                                                                   .own = sent.kv.own_salt,
                                                                   .own_from = sent.kv.own_from})
                              .keys(sent.input_ids);
    ASSERT_FALSE(expected.empty());
    const Reply reply = admin("POST", "/admin/kv/pin", R"({"id":"long","seconds":60})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(pinned_keys(node_, ""), expected);
    EXPECT_EQ(admin("POST", "/admin/kv/pin", R"({"id":"nobody","seconds":60})").status, 404);
}

TEST_F(KvConsoleTest, AChatIsPinnedAsItsTenantsRequestsWouldNameIt) {
    start_with({node()});
    const auto pin = [&](const std::string& tenant, const std::string& user) {
        const Reply reply =
            admin("POST", "/admin/kv/pin",
                  json::serialize(json::value{{"seconds", 60},
                                              {"tenant", tenant},
                                              {"request",
                                               {{"user", user},
                                                {"messages",
                                                 {{{"role", "system"}, {"content", kLong}},
                                                  {{"role", "user"}, {"content", kLong}}}}}}}));
        EXPECT_EQ(reply.status, 200) << reply.body;
        return pinned_keys(node_, tenant);
    };
    const auto ann = pin("private", "ann");
    const auto bob = pin("private", "bob");
    ASSERT_EQ(ann.size(), bob.size());
    EXPECT_EQ(ann.front(), bob.front());  // System text is shared,
    EXPECT_NE(ann.back(), bob.back());    // what the user wrote is not.
    EXPECT_EQ(pin("acme", "ann"), pin("acme", "bob"));
    EXPECT_NE(pin("acme", "ann").front(), ann.front());
}

TEST_F(KvConsoleTest, APinSaysWhatIsWrongWithIt) {
    start_with({node()});
    const auto param = [&](const std::string& body) {
        const Reply reply = admin("POST", "/admin/kv/pin", body);
        EXPECT_EQ(reply.status, 400) << body;
        return reply.json().at("error").at("param");
    };
    EXPECT_EQ(param(R"({"id":"x"})"), "seconds");
    EXPECT_EQ(param(R"({"id":"x","seconds":86401})"), "seconds");
    EXPECT_EQ(param(R"({"names":["x"],"seconds":1})"), "names");
    EXPECT_EQ(param(R"({"names":1,"seconds":1})"), "names");
    static_cast<void>(param(R"({"seconds":1})"));
    static_cast<void>(param(R"({"seconds":1,"request":{"messages":[]}})"));
    static_cast<void>(param("["));
    EXPECT_TRUE(node_.asked.empty());
}

}  // namespace
}  // namespace sluice::gateway
