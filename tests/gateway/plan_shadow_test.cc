// Copies, what comparing them gives, and guards.

#include "tests/gateway/plan_support.h"

namespace sluice::gateway {
namespace {

using testing::Contains;
using testing::HasSubstr;

using PlanShadowTest = PlanServiceTest;

// ---- Shadows --------------------------------------------------------------------------------------

TEST_F(PlanShadowTest, AnEqualCopyIsTheSameByTextTokensAndLogprobs) {
    start(kShadow);
    const Reply reply = chat();
    EXPECT_EQ(reply.pool(), "stable");
    run_until([this] { return shadows("same") == "1"; });
    ASSERT_EQ(candidate.answers.size(), 1U);
    EXPECT_EQ(candidate.answers[0].sampling_params, stable.answers[0].sampling_params);
    EXPECT_LT(candidate.answers[0].priority, stable.answers[0].priority);
    EXPECT_EQ(stable.scorings + candidate.scorings, 2U);
    EXPECT_EQ(service->controller().copies_running("candidate"), 0U);
}

TEST_F(PlanShadowTest, ADifferentCopyIsSeen) {
    candidate.say("Lyon.");
    start(kShadow);
    (void)chat();
    run_until([this] { return shadows("differs") == "1"; });
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].copy.pool, "candidate");
    EXPECT_EQ(told[0].copy.role, RequestRole::kShadow);
    EXPECT_EQ(told[0].baseline, "stable");
    EXPECT_THAT(told[0].comparison->differences, Contains("tokens"));
    EXPECT_TRUE(told[0].comparison->ttft_delta.has_value());
}

TEST_F(PlanShadowTest, ACopyThatTheCandidateRefusesDiffers) {
    candidate.context = 4;  // Tokens; not even the question has so few.
    start(kShadow);
    EXPECT_EQ(chat().status, 200);
    run_until([this] { return shadows("differs") == "1"; });
    EXPECT_THAT(told[0].comparison->differences, Contains("error_class"));
    EXPECT_EQ(told[0].copy.outcome, Outcome::kRejected);
}

TEST_F(PlanShadowTest, AnotherModelIsSeenByItsLogprobsThoughTheTextIsTheSame) {
    candidate.logprob = -0.9F;
    start(kShadow);
    (void)chat();
    run_until([this] { return shadows("differs") == "1"; });
}

TEST_F(PlanShadowTest, ACandidateThatHangsDelaysNobodyAndItsBudgetIsKept) {
    candidate.holding = true;
    start(
        "[plan]\nstable = \"stable\"\n[[plan.shadow]]\npool = \"candidate\"\nshare = 1\n"
        "max_concurrent = 2\n");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(chat().status, 200);
    run_until([this] { return candidate.answers.size() == 2; });
    EXPECT_EQ(shadows("dropped_budget"), "3");
    candidate.release();
    run_until([this] { return shadows("same") == "2"; });
}

TEST_F(PlanShadowTest, ARollbackEndsTheCopiesThatRun) {
    candidate.holding = true;
    start(kShadow);
    EXPECT_EQ(chat().status, 200);
    run_until([this] { return candidate.answers.size() == 1; });
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    run_until([this] { return candidate.gone == 1; });
    EXPECT_EQ(shadows("rolled_back"), "1");
    // The candidate is not to blame.
    EXPECT_EQ(told[0].copy.outcome, Outcome::kClientGone);
    EXPECT_FALSE(told[0].comparison.has_value());
    EXPECT_EQ(chat().status, 200);
    EXPECT_EQ(candidate.answers.size(), 1U);
}

TEST_F(PlanShadowTest, TheStablePoolCanShadowItself) {
    start("[plan]\nstable = \"stable\"\n[[plan.shadow]]\npool = \"stable\"\nshare = 1\n");
    (void)chat();
    run_until([this] { return shadows("same") == "1"; });
    EXPECT_EQ(stable.answers.size(), 2U);
}

// ---- Guards ---------------------------------------------------------------------------------------

TEST_F(PlanShadowTest, AGuardRollsACandidateBackThatDiffers) {
    candidate.say("Lyon.");
    start(std::string(kShadow) +
          "[[plan.guard]]\npool = \"candidate\"\nmetric = \"differs_share\"\nmax = 0.05\n"
          "min_samples = 10\n");
    run_until([this] {
        (void)chat();
        return service->controller().latched();
    });
    const json::value plan = admin("GET", "/admin/status").json().at("plan");
    EXPECT_THAT(plan.at("reason").as_string(), HasSubstr("differs_share of candidate is 100 %"));
    EXPECT_EQ(metric("sluice_rollbacks_total{reason=\"differs_share\"}"), "1");
    EXPECT_THAT(audit(), HasSubstr(R"("who":"guard","what":"rollback")"));
}

}  // namespace
}  // namespace sluice::gateway
