// `sluice ctl kv` against an admin address whose answers a test writes.

#include <gmock/gmock.h>

#include <thread>

#include "app/command.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "tests/app/run_sluice.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;

constexpr std::string_view kStatus =
    R"({"epoch":2,"members":[{"url":"redis://h:1","http":"http://h:2","foreign":false},)"
    R"({"url":"redis://valkey:6379","foreign":true}],"holders":[)"
    R"({"kind":"worker","name":"stable-0","pool":"stable","url":"http://w","foreign":false,"status":)"
    R"({"epoch":1,"tiers":[{"tier":"dram","bytes":1048576,"limit_bytes":2097152,"entries":7,"hits":5,)"
    R"("misses":4,"corrupt":1,"evictions":{"full":2,"expired":1},"counters":{},"holdings":[)"
    R"({"tenant":"acme","class":"chat","bytes":1048576,"entries":7}]}],"stores":[)"
    R"({"url":"redis://valkey:6379","kind":"","reachable":false,"counters":{}},)"
    R"({"url":"redis://h:1","kind":"","reachable":true,"counters":{}}],"pinned":0}},)"
    R"({"kind":"node","url":"redis://h:1","foreign":false,"status":null,"error":"gone"},)"
    R"({"kind":"node","url":"redis://valkey:6379","foreign":true,"status":null,"error":"not ours"}]})";

constexpr std::string_view kResults =
    R"({"holders":[{"kind":"worker","name":"stable-0","url":"http://w","foreign":false,"done":3,)"
    R"("bytes":1024,"failed":1},{"kind":"node","url":"redis://v:1","foreign":true,"done":0,"bytes":0,)"
    R"("failed":0,"error":"not ours"}],"done":3,"bytes":1024,"failed":1})";

/// Answers every request with the same on a thread of its own, and remembers the last one.
class Admin {
public:
    explicit Admin(std::string answer) {
        server_ = *net::HttpServer::listen(
            loop_, {}, [this, answer](const std::shared_ptr<net::HttpExchange>& exchange) {
                const net::HttpRequest& request = exchange->request();
                asked_ = request.method + " " + request.path +
                         (request.query.empty() ? "" : "?" + request.query) + " " + request.body;
                exchange->respond(net::HttpResponse::json(200, answer));
            });
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~Admin() {
        loop_.stop();
        thread_.join();
    }
    Admin(const Admin&) = delete;
    Admin& operator=(const Admin&) = delete;

    auto run(std::vector<std::string> words) const {
        words.insert(words.begin(), {"ctl", "kv"});
        words.insert(words.end(), {"--url", "http://127.0.0.1:" + std::to_string(server_->port())});
        return run_sluice(words);
    }
    /// Between two runs.
    [[nodiscard]] const std::string& asked() const { return asked_; }

private:
    net::EventLoop loop_;
    std::unique_ptr<net::HttpServer> server_;
    std::string asked_;
    std::thread thread_;
};

TEST(CtlKvTest, AStatusShowsTiersTenantsAndWhoIsForeignGoneOrLate) {
    const Admin admin{std::string(kStatus)};
    const auto outcome = admin.run({"status"});
    EXPECT_EQ(outcome.code, kFailed) << "one of ours did not answer";
    EXPECT_THAT(outcome.out, HasSubstr("epoch 2: 2 nodes"));
    EXPECT_THAT(outcome.out, HasSubstr("redis://valkey:6379  foreign"));
    EXPECT_THAT(outcome.out, HasSubstr("stable-0 follows epoch 1"));
    EXPECT_THAT(outcome.out, HasSubstr("stable-0 does not reach redis://valkey:6379\n"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("does not reach redis://h:1")));
    EXPECT_THAT(outcome.out,
                testing::ContainsRegex("stable-0 +dram +1 MiB +2 MiB +7 +5 +4 +3 +1\n"));
    EXPECT_THAT(outcome.out, testing::ContainsRegex("redis://h:1 +no answer: gone"));
    EXPECT_THAT(outcome.out, testing::ContainsRegex("acme +chat +dram +1 MiB +7\n"));
    EXPECT_EQ(admin.run({"status", "--json"}).out, std::string(kStatus) + "\n");
}

TEST(CtlKvTest, AStatusOfAllThatCouldBeAskedIsDone) {
    const Admin admin{
        R"({"epoch":1,"members":[],"holders":[{"kind":"node","url":"redis://valkey:6379",)"
        R"("foreign":true,"status":null,"error":"not ours"}]})"};
    const auto outcome = admin.run({"status"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.out, testing::ContainsRegex("redis://valkey:6379 +foreign: not ours"));
}

TEST(CtlKvTest, NodesAreAddedAndRemovedByTheirUrls) {
    const Admin admin{
        R"({"epoch":3,"members":[{"url":"redis://h:1","foreign":true}],"unreachable":[]})"};
    const auto added = admin.run({"nodes", "add", "redis://h:1", "--http", "http://h:2"});
    EXPECT_EQ(added.code, kDone) << added.err;
    EXPECT_THAT(added.out, HasSubstr("epoch 3: 1 node\n"));
    EXPECT_EQ(admin.asked(), R"(POST /admin/kv/nodes {"url":"redis://h:1","http":"http://h:2"})");
    EXPECT_EQ(admin.run({"nodes", "remove", "redis://h:1"}).code, kDone);
    EXPECT_EQ(admin.asked(), "DELETE /admin/kv/nodes?url=redis%3A%2F%2Fh%3A1 ");
    EXPECT_EQ(admin.run({"nodes", "list"}).code, kDone);
    EXPECT_EQ(admin.asked(), "GET /admin/kv/nodes ");
}

TEST(CtlKvTest, ANodeThatDoesNotAnswerIsAddedAndAFailure) {
    const Admin admin{R"({"epoch":1,"members":[{"url":"redis://h:1","foreign":true}],)"
                      R"("unreachable":["redis://h:1: refused"]})"};
    const auto added = admin.run({"nodes", "add", "redis://h:1"});
    EXPECT_EQ(added.code, kFailed);
    EXPECT_THAT(added.out, HasSubstr("epoch 1: 1 node\n"));
    EXPECT_THAT(added.out, HasSubstr("nobody answers at redis://h:1: refused\n"));
    EXPECT_THAT(added.err, HasSubstr("it is added"));
}

TEST(CtlKvTest, OrdersSayWhatTheyMean) {
    const Admin admin{std::string(kResults)};
    const auto dropped = admin.run({"drop", "--tenant", "acme", "--class", "chat"});
    EXPECT_EQ(dropped.code, kFailed) << "one block could not be dropped";
    EXPECT_EQ(admin.asked(), R"(POST /admin/kv/drop {"tenant":"acme","class":"chat"})");
    EXPECT_THAT(dropped.out, HasSubstr("stable-0: 3 blocks dropped, 1 KiB, 1 could not be"));
    // A foreign server can't be told anything: that is no failure.
    EXPECT_EQ(admin.run({"pin", "r1", "--for", "2h"}).code, kDone);
    EXPECT_EQ(admin.asked(), R"(POST /admin/kv/pin {"seconds":7200,"id":"r1"})");
    EXPECT_EQ(
        admin.run({"pin", "--name", "kv:a:chat:1", "kv:a:chat:2", "--name", "kv:a:chat:3"}).code,
        kDone);
    EXPECT_EQ(admin.asked(), R"(POST /admin/kv/pin {"seconds":3600,)"
                             R"("names":["kv:a:chat:1","kv:a:chat:2","kv:a:chat:3"]})");
    EXPECT_EQ(admin.run({"pin", "--system", "Be brief.", "--tenant", "acme"}).code, kDone);
    EXPECT_THAT(admin.asked(), HasSubstr(R"("content":"Be brief.")"));
    EXPECT_THAT(admin.asked(), HasSubstr(R"("tenant":"acme")"));
    const auto verified = admin.run({"verify"});
    EXPECT_THAT(verified.out, HasSubstr("1 corrupt"));
    EXPECT_EQ(verified.code, kFailed);
    EXPECT_EQ(admin.asked(), "POST /admin/kv/verify {}");
}

TEST(CtlKvTest, WhatIsNotSaidIsWrongUse) {
    const Admin admin{std::string(kResults)};
    EXPECT_EQ(admin.run({"drop"}).code, kWrongUse);
    EXPECT_EQ(admin.run({"pin"}).code, kWrongUse);
    EXPECT_EQ(admin.run({"pin", "r1", "--system", "x"}).code, kWrongUse);
    EXPECT_EQ(admin.run({"pin", "r1", "--for", "soon"}).code, kWrongUse);
    const auto long_pin = admin.run({"pin", "r1", "--for", "25h"});
    EXPECT_EQ(long_pin.code, kWrongUse);
    EXPECT_THAT(long_pin.err, HasSubstr("--for: at most 24h, and 25h is more"));
    EXPECT_EQ(admin.run({"drop", "--name", "kv:a:chat:1", "--name", "kv:a:chat:2"}).code,
              kWrongUse);
    EXPECT_EQ(admin.asked(), "");
}

TEST(CtlKvTest, ADropThatAllObeyedIsDone) {
    const Admin admin{
        R"({"holders":[{"kind":"node","url":"redis://h:1","foreign":false,"done":2,"bytes":0,)"
        R"("failed":0}],"done":2,"bytes":0,"failed":0})"};
    EXPECT_EQ(admin.run({"drop", "--tenant", "a"}).code, kDone);
}

TEST(CtlKvTest, AHolderOfOursThatDidNotObeyIsAFailure) {
    const Admin admin{
        R"({"holders":[{"kind":"node","url":"redis://h:1","foreign":false,"done":0,"bytes":0,)"
        R"("failed":0,"error":"gone"}],"done":0,"bytes":0,"failed":0})"};
    const auto outcome = admin.run({"drop", "--tenant", "a"});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_THAT(outcome.out, HasSubstr("redis://h:1: gone"));
}

}  // namespace
}  // namespace sluice::app
