// A gateway with several pools: reports, copies, steering.

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

/// Keeps the reports, and copies what is dispatched to `copy_to` if that is set.
class Witness final : public RequestObserver {
public:
    void on_dispatch(Generation& generation) override {
        if (copy_to == nullptr || generation.request().role == RequestRole::kShadow) return;
        generation.collect();
        copied = gateway->copy(generation, *copy_to);
    }
    void on_done(const Generation&, const RequestReport& report) override {
        reports.push_back(report);
    }

    Gateway* gateway = nullptr;
    Pool* copy_to = nullptr;
    std::string copied;
    std::vector<RequestReport> reports;
};

TEST_F(GatewayTest, EveryRequestIsReportedOnceWithItsLegs) {
    const std::string text = "Once upon a time there was a fox.";
    const auto witness = std::make_shared<Witness>();
    start({dies_after(text, 3), says(text)}, {.observers = {witness}});
    EXPECT_EQ(chat(R"(,"stream":true,"seed":7)").content(), text);
    ASSERT_EQ(witness->reports.size(), 1U);
    const RequestReport& report = witness->reports[0];
    EXPECT_EQ(report.outcome, Outcome::kOk);
    EXPECT_EQ(report.kind, RequestKind::kSeeded);
    EXPECT_EQ(report.seed, 7U);
    EXPECT_EQ(report.pool, "stable");
    EXPECT_EQ(report.prompt_tokens, 5U);
    EXPECT_TRUE(report.prompt_counted);
    EXPECT_EQ(report.completion_tokens, ids(text).size());
    EXPECT_EQ(report.resumes, 1U);
    EXPECT_EQ(report.status, 200);
    EXPECT_TRUE(report.ttft.has_value());
    EXPECT_EQ(report.tbt.count(), ids(text).size() - 1);
    EXPECT_TRUE(report.mean_gap.has_value());
    EXPECT_LE(*report.mean_gap, report.tbt.max() + std::chrono::microseconds(1));
    EXPECT_GE(report.recomputed_tokens, 3U);
    ASSERT_EQ(report.legs.size(), 2U);
    EXPECT_EQ(report.legs[0].tokens, 3U);
    EXPECT_FALSE(report.legs[0].fault.empty());
    EXPECT_EQ(report.legs[1].worker, "stable-0");
    EXPECT_EQ(report.legs[1].versions->fingerprint, "f");
    EXPECT_FALSE(report.system_fingerprint.empty());

    EXPECT_EQ(send("POST", "/v1/chat/completions", "{").status, 400);
    ASSERT_EQ(witness->reports.size(), 2U);
    EXPECT_EQ(witness->reports[1].outcome, Outcome::kRejected);
    EXPECT_EQ(witness->reports[1].error_code, "invalid_request");
    EXPECT_EQ(witness->reports[1].status, 400);
    EXPECT_TRUE(witness->reports[1].legs.empty());
}

TEST_F(GatewayTest, ACopyRunsOnItsOwnPoolAndNobodyHearsIt) {
    FakeWorker candidate(loop, {says("Lyon.")});
    const auto witness = std::make_shared<Witness>();
    start({says("Paris.")},
          {.native_pools = {{.name = "candidate", .workers = {{.url = candidate.url()}}}},
           .observers = {witness}});
    run_until([this] { return gateway->pools().any_ready(*gateway->pools().find("candidate")); });
    witness->gateway = gateway.get();
    witness->copy_to = gateway->pools().find("candidate");
    EXPECT_EQ(chat(R"(,"seed":3)").json().at("choices").at(0).at("message").at("content"),
              "Paris.");
    run_until([&] { return witness->reports.size() == 2; });
    const bool first = witness->reports[0].role == RequestRole::kShadow;
    const RequestReport& shadow = witness->reports[first ? 0 : 1];
    const RequestReport& answer = witness->reports[first ? 1 : 0];
    EXPECT_EQ(shadow.rid, witness->copied);
    EXPECT_EQ(shadow.pool, "candidate");
    EXPECT_EQ(shadow.answer->text, "Lyon.");
    EXPECT_EQ(answer.answer->text, "Paris.");
    EXPECT_EQ(answer.answer->finish_reason, "stop");
    EXPECT_EQ(candidate.requests[0].input_ids, worker->requests[0].input_ids);
}

class Switch final : public Steering {
public:
    explicit Switch(Pool*& to) : to_(to) {}
    Pool* choose(const InboundRequest&, Pool*) override { return to_; }
    [[nodiscard]] bool serves(std::string_view) const override { return true; }
    [[nodiscard]] bool answers(const Pool& pool) const override { return &pool == to_; }
    [[nodiscard]] std::optional<std::string> refuse_pin(const Pool&) const override {
        return std::nullopt;
    }

private:
    Pool*& to_;
};

TEST_F(GatewayTest, WhatWaitsIsSteeredAgainWhenItIsDispatched) {
    FakeWorker slow(loop, {says("Lyon.")});
    slow.ready = false;
    Pool* chosen = nullptr;
    start({says("Paris.")},
          {.native_pools = {{.name = "candidate", .workers = {{.url = slow.url()}}}},
           .make_steering = [&](PoolSet&) { return std::make_unique<Switch>(chosen); }});
    chosen = gateway->pools().find("candidate");
    Reply reply;
    const auto call = begin_send(reply, "POST", "/v1/chat/completions", body(""));
    run_until([this] { return gateway->queued_requests() == 1; });
    chosen = gateway->pools().find("stable");
    gateway->replan();
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.headers.find("x-sluice-pool"), "stable");
    EXPECT_TRUE(slow.requests.empty());
}

}  // namespace
}  // namespace sluice::gateway
