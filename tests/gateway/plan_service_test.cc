#include "gateway/plan_service.h"

#include "tests/gateway/plan_support.h"

namespace sluice::gateway {
namespace {

using testing::HasSubstr;

// ---- Plans over the admin address -----------------------------------------------------------------

TEST_F(PlanServiceTest, APlanIsAppliedShownAndWrittenDown) {
    start(kStable);
    EXPECT_EQ(chat().pool(), "stable");
    const Reply applied = admin("PUT", "/admin/plan", std::string(kSplit));
    ASSERT_EQ(applied.status, 200) << applied.body;
    EXPECT_EQ(applied.json().at("version"), 2);
    EXPECT_EQ(applied.json().at("changes").at(0), "+ split candidate weight 1 lease 10m");
    EXPECT_EQ(chat().pool(), "candidate");
    EXPECT_THAT(admin("GET", "/admin/plan").json().at("toml").as_string(), HasSubstr("weight = 1"));
    EXPECT_THAT(audit(), HasSubstr(R"("what":"apply","why":"new plan: a test","version":2)"));
    EXPECT_THAT(audit(), HasSubstr(R"("who":"me@here at admin 127.0.0.1)"));
    start(kStable);
    EXPECT_EQ(chat().pool(), "candidate") << "a restart forgot what was applied";
}

TEST_F(PlanServiceTest, AWrongPlanIsToldLineByLineAndChangesNothing) {
    start(kStable);
    const Reply wrong =
        admin("PUT", "/admin/plan",
              "[plan]\nstable = \"stabel\"\n[[plan.split]]\npool = \"candidate\"\n");
    EXPECT_EQ(wrong.status, 400);
    const std::string message(wrong.json().at("error").at("message").as_string());
    EXPECT_THAT(message, HasSubstr("plan:2: plan.stable names no pool: 'stabel'"));
    EXPECT_THAT(message, HasSubstr("plan:3: plan.split.lease must be given"));
    EXPECT_EQ(admin("GET", "/admin/plan").json().at("version"), 1);
    EXPECT_EQ(admin("PUT", "/admin/plan", std::string(300'000, '#')).status, 413);
}

TEST_F(PlanServiceTest, ADifferenceIsShownAndNotApplied) {
    start(kStable);
    const Reply diff = admin("POST", "/admin/plan/diff", std::string(kShadow));
    EXPECT_EQ(diff.json().at("changes").at(0), "+ shadow candidate share 1 max_concurrent 8");
    EXPECT_EQ(admin("GET", "/admin/plan").json().at("version"), 1);
}

TEST_F(PlanServiceTest, WithoutAWayBackAPlanIsRefused) {
    stable.ready = false;
    start(kStable);
    const Reply refused = admin("PUT", "/admin/plan", std::string(kSplit));
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.json().at("error").at("param"), "plan.stable");
}

TEST_F(PlanServiceTest, StatusTellsThePlanAndTheWayBack) {
    start(kSplit);
    const json::value status = admin("GET", "/admin/status").json();
    EXPECT_EQ(status.at("plan").at("version"), 1);
    EXPECT_EQ(status.at("plan").at("latched"), false);
    EXPECT_TRUE(status.at("plan").at("reason").is_null());
    EXPECT_EQ(status.at("plan").at("splits").at(0).at("pool"), "candidate");
    EXPECT_EQ(status.at("rollback_capacity"), 64);
    EXPECT_EQ(status.at("rollback_needed"), 0);
    EXPECT_EQ(status.at("pools").as_array().size(), 2U);
}

// ---- Rolling back ---------------------------------------------------------------------------------

TEST_F(PlanServiceTest, AfterARollbackOf200StreamsNothingReachesTheCandidate) {
    start(kSplit);
    candidate.holding = true;
    std::vector<Reply> replies(200);
    std::vector<std::unique_ptr<net::HttpCall>> calls;
    for (Reply& reply : replies) calls.push_back(begin(reply, chat_request(R"(,"stream":true)")));
    run_until([this] { return candidate.answers.size() == 200; });

    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    const std::size_t before = candidate.answers.size();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(chat().pool(), "stable");
    candidate.release();
    run_until([&] { return std::ranges::all_of(replies, &Reply::done); });
    for (const Reply& reply : replies) EXPECT_THAT(reply.body, HasSubstr("[DONE]"));
    // The same plan again, a restart of the gateway with the same file, and another file.
    EXPECT_EQ(admin("PUT", "/admin/plan", std::string(kSplit)).json().at("latched"), true);
    EXPECT_EQ(chat().pool(), "stable");
    for (const std::string_view plan : {kSplit, kShadow}) {
        start(plan);
        EXPECT_EQ(chat().pool(), "stable");
        EXPECT_EQ(admin("GET", "/admin/status").json().at("plan").at("reason"), "by hand: a test");
    }
    EXPECT_EQ(candidate.answers.size(), before);
    EXPECT_THAT(audit(), HasSubstr(R"("what":"rollback","why":"by hand: a test")"));
}

TEST_F(PlanServiceTest, WhatWaitsForTheCandidateGoesToStable) {
    start(kSplit);
    // Both are gone for a moment: requests wait, and the plan would send them to the candidate.
    stable.ready = candidate.ready = false;
    run_until([this] { return !ready("stable") && !ready("candidate"); });
    Reply reply;
    const auto call = begin(reply, chat_request());
    run_until([this] { return gateway->queued_requests() == 1; });
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    candidate.ready = true;
    run_until([this] { return ready("candidate"); });
    stable.ready = true;
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.pool(), "stable");
    EXPECT_TRUE(candidate.answers.empty());
}

TEST_F(PlanServiceTest, EvacuationMovesRunningAnswersToStable) {
    start(kSplit);
    candidate.holding = true;
    Reply reply;
    const auto call = begin(reply, chat_request(R"(,"stream":true)"));
    run_until([this] { return candidate.answers.size() == 1; });
    run_until([&] {
        return reply.body.find("Par") != std::string::npos ||
               reply.body.find("content") != std::string::npos;
    });
    ASSERT_EQ(admin("POST", "/admin/rollback?evacuate=true").status, 200);
    run_until([&] { return reply.done; });
    EXPECT_EQ(stable.answers.size(), 1U);
    EXPECT_EQ(stable.answers[0].resume_output_ids.size(), 1U);
    EXPECT_THAT(reply.body, HasSubstr("[DONE]"));
    EXPECT_EQ(candidate.gone, 1U);
}

TEST_F(PlanServiceTest, AnAnswerOfOtherWeightsIsNotEvacuated) {
    candidate.weights = "others";
    start(kSplit);
    candidate.holding = true;
    Reply reply;
    const auto call = begin(reply, chat_request(R"(,"stream":true)"));
    run_until([&] { return reply.body.find("content") != std::string::npos; });
    ASSERT_EQ(admin("POST", "/admin/rollback?evacuate=true").status, 200);
    candidate.release();
    run_until([&] { return reply.done; });
    EXPECT_THAT(reply.body, HasSubstr("[DONE]"));
    EXPECT_TRUE(stable.answers.empty());
}

TEST_F(PlanServiceTest, OnlyRearmingBringsTheCandidateBack) {
    start(kSplit);
    EXPECT_EQ(admin("POST", "/admin/plan/rearm").status, 409);
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    EXPECT_EQ(metric("sluice_plan_latched"), "1");
    ASSERT_EQ(admin("POST", "/admin/plan/rearm").status, 200);
    EXPECT_EQ(chat().pool(), "candidate");
    EXPECT_EQ(metric("sluice_plan_latched"), "0");
    EXPECT_EQ(metric("sluice_rollbacks_total{reason=\"manual\"}"), "1");
}

TEST_F(PlanServiceTest, ADamagedStateFileHoldsEverythingOnStable) {
    start(kSplit);
    std::ofstream(folder + "/plan.state") << "half of some";
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
    EXPECT_THAT(admin("GET", "/admin/status").json().at("plan").at("reason").as_string(),
                HasSubstr("can't be read"));
}

TEST_F(PlanServiceTest, AStateThatCannotBeWrittenHoldsEverythingOnStable) {
    fs::create_directory(folder + "/plan.state.new");  // Where it would be written.
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
}

TEST_F(PlanServiceTest, ARollbackThatCannotBeWrittenHoldsAndIsAnError) {
    start(kSplit);
    fs::create_directory(folder + "/plan.state.new");
    EXPECT_EQ(admin("POST", "/admin/rollback").status, 500);
    EXPECT_EQ(chat().pool(), "stable");
}

TEST_F(PlanServiceTest, ACandidateThatIsNotReadyIsNotWaitedFor) {
    candidate.ready = false;
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
}

TEST_F(PlanServiceTest, APinnedRequestReachesItsPoolUnlessThatWasRolledBack) {
    start(kSplit);
    EXPECT_EQ(pinned_chat("stable").pool(), "stable");
    EXPECT_EQ(pinned_chat("candidate").pool(), "candidate");
    EXPECT_EQ(pinned_chat("nowhere").json().at("error").at("code"), "invalid_request");
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    const Reply refused = pinned_chat("candidate");
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json().at("error").at("code"), "unsupported");
    EXPECT_EQ(refused.json().at("error").at("param"), "x-sluice-pool");
    EXPECT_EQ(candidate.answers.size(), 1U);
    EXPECT_EQ(pinned_chat("stable").pool(), "stable");
    // A plan that gives it nothing, and no latch: what is asked for by name may go there.
    ASSERT_EQ(admin("PUT", "/admin/plan", std::string(kStable)).status, 200);
    ASSERT_EQ(admin("POST", "/admin/plan/rearm").status, 200);
    EXPECT_EQ(chat().pool(), "stable");
    EXPECT_EQ(pinned_chat("candidate").pool(), "candidate");
}

TEST_F(PlanServiceTest, AReloadTakesTheFilesPlanIfItHasChanged) {
    start(kStable);
    const auto plan_of = [this](std::string_view text) {
        return *traffic::read_plan(text, "f.toml", kPools);
    };
    ASSERT_EQ(admin("PUT", "/admin/plan", std::string(kShadow)).status, 200);
    // The file says what it always said: what was applied since goes on.
    ASSERT_TRUE(service->reload(plan_of(kStable)).has_value());
    EXPECT_EQ(service->controller().plan(), plan_of(kShadow));
    ASSERT_TRUE(service->reload(plan_of(kSplit)).has_value());
    EXPECT_EQ(chat().pool(), "candidate");
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    ASSERT_TRUE(service->reload(plan_of(kShadow)).has_value());
    ASSERT_TRUE(service->reload(plan_of(kSplit)).has_value());
    EXPECT_EQ(chat().pool(), "stable");
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
}

}  // namespace
}  // namespace sluice::gateway
