// `sluice ctl` against an admin address whose answers a test writes.

#include <gmock/gmock.h>

#include <thread>

#include "app/command.h"
#include "app/state_folder.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kStatus =
    R"({"plan":{"stable":"stable"},"pools":[{"name":"stable","engine":"native","ready":true,)"
    R"("dispatched_total":7,"workers":[{"name":"stable-0","url":"http://127.0.0.1:40001",)"
    R"("pid":4711,"phase":"full","state":"ready","running":2,"waiting":0,"kv_used_share":0.25,)"
    R"("report_age_ms":12,"versions":null},{"name":"stable-1","url":"http://127.0.0.1:40002",)"
    R"("phase":"decode","state":"lost","reason":"nobody listens there"}]}]})";

/// Answers every request on a thread of its own.
class AdminStandIn {
public:
    explicit AdminStandIn(net::HttpResponse answer) {
        server_ = *net::HttpServer::listen(
            loop_, {}, [this, answer](const std::shared_ptr<net::HttpExchange>& exchange) {
                path_ = exchange->request().path;
                exchange->respond(answer);
            });
        url_ = "http://127.0.0.1:" + std::to_string(server_->port());
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~AdminStandIn() {
        loop_.stop();
        thread_.join();
    }
    AdminStandIn(const AdminStandIn&) = delete;
    AdminStandIn& operator=(const AdminStandIn&) = delete;

    [[nodiscard]] const std::string& url() const { return url_; }
    /// Of the last request; call it between requests.
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    net::EventLoop loop_;
    std::unique_ptr<net::HttpServer> server_;
    std::string url_;
    std::string path_;
    std::thread thread_;
};

net::HttpResponse json_answer(int status, std::string_view body) {
    return net::HttpResponse::json(status, std::string(body));
}

TEST(CtlTest, StatusShowsPoolsAndWorkers) {
    const AdminStandIn admin(json_answer(200, kStatus));
    const Outcome text = run_sluice({"ctl", "status", "--url", admin.url()});
    EXPECT_EQ(text.code, kDone) << text.err;
    EXPECT_EQ(admin.path(), "/admin/status");
    EXPECT_THAT(text.out, HasSubstr("pool stable (native): ready, 7 dispatched"));
    EXPECT_THAT(text.out, HasSubstr("stable-0"));
    EXPECT_THAT(text.out, HasSubstr("4711"));
    EXPECT_THAT(text.out, HasSubstr("stable-1  decode  lost"));
    EXPECT_THAT(text.out, HasSubstr("nobody listens there"));
}

TEST(CtlTest, StatusAsJsonIsWhatTheGatewaySaid) {
    const AdminStandIn admin(json_answer(200, kStatus));
    const Outcome out = run_sluice({"ctl", "status", "--json", "--url", admin.url() + "/"});
    EXPECT_EQ(out.code, kDone) << out.err;
    EXPECT_EQ(out.out, std::string(kStatus) + "\n");
}

TEST(CtlTest, TheServiceOfTheStateFolderIsTheOneThatIsMeant) {
    const AdminStandIn admin(json_answer(200, kStatus));
    const TemporaryFolder folder;
    const StateLock lock = *StateLock::acquire(*StateFolder::find(folder.path()));
    ASSERT_TRUE(lock.write_state({.url = "http://127.0.0.1:1", .admin = admin.url()}));
    const Outcome out = run_sluice({"ctl", "status", "--json", "--state", folder.path()});
    EXPECT_EQ(out.code, kDone) << out.err;
}

TEST(CtlTest, NothingThatAnswersIsAFailureWithItsAddress) {
    // Port 1 is nobody's here.
    const Outcome out = run_sluice({"ctl", "status", "--url", "http://127.0.0.1:1"});
    EXPECT_EQ(out.code, kFailed);
    EXPECT_THAT(out.out, IsEmpty());
    EXPECT_THAT(out.err, HasSubstr("no gateway answers at http://127.0.0.1:1"));
}

TEST(CtlTest, WhatTheGatewayRefusesIsToldInItsWords) {
    const AdminStandIn admin(json_answer(
        409, R"({"error":{"message":"is busy","type":"x","param":"plan.stable","code":"y"}})"));
    const Outcome out = run_sluice({"ctl", "status", "--url", admin.url()});
    EXPECT_EQ(out.code, kFailed);
    EXPECT_EQ(out.err, "sluice: plan.stable: is busy\n");
}

TEST(CtlTest, WhereShowsWhatWasDecidedOnCachedBlocks) {
    const AdminStandIn admin(json_answer(
        200, R"({"rid":"r","request_id":"mine","state":"done","outcome":"ok","cache":{)"
             R"("cached_tokens":192,"by_source":{"node":128,"pool":64},"decision":{"loads":[)"
             R"({"source":"node","choice":"load","tokens":128,"predicted_us":3000,)"
             R"("compute_us":40000,"queue_us":500,"took_us":2100}],"compute_predicted_us":8000,)"
             R"("compute_took_us":9250}},"resumes":0,"legs":[],"shadow":[]})"));
    const Outcome out = run_sluice({"ctl", "where", "mine", "--url", admin.url()});
    EXPECT_EQ(out.code, kDone) << out.err;
    EXPECT_EQ(out.out,
              "request mine (r): done, ok\n"
              "cache: 192 tokens (node 128, pool 64), resumes: 0\n"
              "  node: load 128 tokens, 2.1 ms (predicted 3.0; computing them 40.0, after a queue "
              "of 0.5)\n"
              "  then, to the first token: 9.2 ms (predicted 8.0)\n");
}

TEST(CtlTest, DrainWaitsUntilNothingRunsThere) {
    const AdminStandIn idle(
        json_answer(200, R"({"name":"stable-0","state":"draining","leases":0})"));
    const Outcome done = run_sluice({"ctl", "drain", "stable-0", "--url", idle.url()});
    EXPECT_EQ(done.code, kDone) << done.err;
    EXPECT_EQ(idle.path(), "/workers/stable-0");
    EXPECT_THAT(done.out, HasSubstr("nothing runs there"));

    const AdminStandIn busy(
        json_answer(200, R"({"name":"stable-0","state":"draining","leases":3})"));
    const Outcome late =
        run_sluice({"ctl", "drain", "stable-0", "--wait", "1ms", "--url", busy.url()});
    EXPECT_EQ(late.code, kFailed);
    EXPECT_THAT(late.out, HasSubstr("3 requests run there"));
    const Outcome undone = run_sluice({"ctl", "drain", "stable-0", "--undo", "--url", busy.url()});
    EXPECT_EQ(undone.code, kDone) << undone.err;
    EXPECT_EQ(run_sluice({"ctl", "drain", "--url", busy.url()}).code, kWrongUse);
}

TEST(CtlTest, WhatIsNoStatusIsAFailure) {
    for (const std::string_view body : {"", "[]", "{}", R"({"plan":{},"pools":[1]})"}) {
        const AdminStandIn admin(json_answer(200, body));
        EXPECT_EQ(run_sluice({"ctl", "status", "--url", admin.url()}).code, kFailed) << body;
    }
}

TEST(CtlTest, AUrlThatIsNoneIsWrongUse) {
    const Outcome out = run_sluice({"ctl", "status", "--url", "localhost"});
    EXPECT_EQ(out.code, kWrongUse);
    EXPECT_THAT(out.err, HasSubstr("--url"));
}

}  // namespace
}  // namespace sluice::app
