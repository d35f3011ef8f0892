// Workers that come and go at the admin address, while a gateway runs.

#include "gateway/worker_directory.h"

#include <set>

#include "base/limits.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

class WorkerDirectoryTest : public GatewayTest {
protected:
    /// A gateway whose one worker is of the command line.
    void open() { start({says("Paris.")}); }

    Reply admin(const std::string& method, const std::string& path, const std::string& body = {}) {
        return send(method, path, body, {}, gateway->admin_port());
    }
    Reply add(const std::string& url, const std::string& more = {}) {
        return admin("POST", "/workers", R"({"pool":"stable","url":")" + url + "\"" + more + "}");
    }
    void drain(const std::string& name, bool on) {
        const std::string body = on ? R"({"draining":true})" : R"({"draining":false})";
        EXPECT_EQ(admin("PATCH", "/workers/" + name, body).status, 200);
    }
    [[nodiscard]] std::string state(const std::string& name) {
        const Reply reply = admin("GET", "/workers/" + name);
        if (reply.status != 200) return {};
        return json::value_to<std::string>(reply.json().at("state"));
    }
    static std::string name(const Reply& reply) {
        return json::value_to<std::string>(reply.json().at("name"));
    }
    [[nodiscard]] std::size_t known() const { return gateway->pools().at(0).workers().size(); }
};

TEST_F(WorkerDirectoryTest, AWorkerThatIsAddedServesAndOneThatIsTakenAwayIsForgotten) {
    open();
    FakeWorker other(loop, {says("Rome.")});
    const Reply added = add(other.url());
    ASSERT_EQ(added.status, 200) << added.body;
    EXPECT_EQ(name(added), "stable-1");
    run_until([&] { return state("stable-1") == "ready"; });
    drain("stable-0", true);
    EXPECT_EQ(chat("").status, 200);
    EXPECT_FALSE(other.requests.empty());
    drain("stable-0", false);
    const std::size_t served = other.requests.size();
    const Reply removed = admin("DELETE", "/workers/stable-1");
    EXPECT_EQ(removed.status, 200);
    EXPECT_EQ(json::value_to<std::string>(removed.json().at("state")), "removed");
    EXPECT_EQ(known(), 1U);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(chat("").status, 200);
    EXPECT_EQ(other.requests.size(), served);
    EXPECT_EQ(admin("GET", "/workers/stable-1").status, 404);
    // The place is free again, the name is not: records speak of it.
    EXPECT_EQ(name(add(other.url())), "stable-2");
}

TEST_F(WorkerDirectoryTest, ARenewalIsTheSameWorkerAndIsAskedAtOnce) {
    open();
    FakeWorker other(loop, {says("Rome.")});
    EXPECT_EQ(name(add(other.url(), R"(,"lease_s":60)")), "stable-1");
    run_until([&] { return state("stable-1") == "ready"; });
    other.pid = 101;
    EXPECT_EQ(name(add(other.url(), R"(,"lease_s":60)")), "stable-1");
    run_until([&] { return admin("GET", "/workers/stable-1").json().at("pid").as_int64() == 101; });
    EXPECT_EQ(known(), 2U);
}

TEST_F(WorkerDirectoryTest, ALeaseThatEndsTakesTheWorkerAway) {
    open();
    FakeWorker other(loop, {says("Rome.")});
    EXPECT_EQ(add(other.url(), R"(,"lease_s":1)").status, 200);
    run_until([&] { return known() == 1; });
    EXPECT_EQ(chat("").status, 200);
}

TEST_F(WorkerDirectoryTest, ADrainedWorkerGetsNothingUntilItIsUndone) {
    open();
    FakeWorker other(loop, {says("Rome.")});
    EXPECT_EQ(add(other.url()).status, 200);
    run_until([&] { return state("stable-1") == "ready"; });
    const Reply draining = admin("PATCH", "/workers/stable-1", R"({"draining":true})");
    EXPECT_EQ(draining.status, 200) << draining.body;
    EXPECT_EQ(state("stable-1"), "draining");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(chat("").status, 200);
    EXPECT_TRUE(other.requests.empty());
    drain("stable-1", false);
    EXPECT_EQ(state("stable-1"), "ready");
    drain("stable-0", true);
    EXPECT_EQ(chat("").status, 200);
    EXPECT_FALSE(other.requests.empty());
}

TEST_F(WorkerDirectoryTest, AStreamOnADrainedWorkerGoesOnElsewhere) {
    worker = std::make_unique<FakeWorker>(
        loop, std::vector<FakeWorker::Script>{hangs("Paris is nice."), says("Paris is nice.")});
    start_gateway({});
    run_until([this] { return get("/ready").status == 200; });
    Reply reply;
    const auto call = begin_send(reply, "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
    run_until([&] { return worker->requests.size() == 1 && !reply.body.empty(); });
    FakeWorker other(loop, {says("Paris is nice.")});
    EXPECT_EQ(add(other.url()).status, 200);
    run_until([&] { return state("stable-1") == "ready"; });
    EXPECT_EQ(admin("PATCH", "/workers/stable-0", R"({"draining":true})").status, 200);
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.content(), "Paris is nice.");
    ASSERT_EQ(other.requests.size(), 1U);
    EXPECT_EQ(other.requests[0].resume_output_ids.size(), 1U);
    run_until([&] { return worker->gone == 1; });
}

TEST_F(WorkerDirectoryTest, EachRankOfAWorkerIsChosenByItself) {
    open();
    EXPECT_EQ(chat("").status, 200);
    EXPECT_FALSE(worker->requests[0].dp_rank.has_value()) << "there is only one";
    FakeWorker other(loop, {hangs("Rome."), hangs("Rome."), says("Rome.")});
    other.info.dp_ranks = 2;
    EXPECT_EQ(add(other.url()).status, 200);
    run_until([&] { return state("stable-1") == "ready"; });
    EXPECT_EQ(known(), 2U) << "it is one worker";
    drain("stable-0", true);
    {
        Reply replies[2];
        const auto one =
            begin_send(replies[0], "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
        const auto two =
            begin_send(replies[1], "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
        run_until([&] { return other.requests.size() == 2; });
        const std::set ranks{other.requests[0].dp_rank, other.requests[1].dp_rank};
        EXPECT_EQ(ranks, (std::set<std::optional<std::uint32_t>>{0, 1}));
    }
    run_until([&] { return other.gone == 2; });
    // It comes back with one.
    other.info.dp_ranks = 1;
    other.pid = 101;
    EXPECT_EQ(add(other.url()).status, 200);
    run_until([&] {
        return admin("GET", "/workers/stable-1").json().at("pid").as_int64() == 101 &&
               gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()) == 1;
    });
    EXPECT_EQ(chat("").status, 200);
    EXPECT_FALSE(other.requests.at(2).dp_rank.has_value());
}

TEST_F(WorkerDirectoryTest, ThousandsOfRegistrationsStayWithinTheBound) {
    open();
    // Nobody answers there; what counts is what the list does with them.
    int refused = 0;
    WorkerDirectory& directory = gateway->directory();
    for (int i = 0; i < 5'000; ++i) {
        const auto named =
            directory.announce({"stable", "http://127.0.0.2:" + std::to_string(10'000 + i)},
                               std::chrono::seconds(3'600));
        refused += named ? 0 : 1;
    }
    EXPECT_EQ(known(), limits::kRegistryWorkers);
    EXPECT_EQ(refused, 5'001 - static_cast<int>(limits::kRegistryWorkers));
    EXPECT_EQ(chat("").status, 200);
}

}  // namespace
}  // namespace sluice::gateway
