#include "admission/admission.h"

#include <gmock/gmock.h>

namespace sluice::admission {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

constexpr Instant kStart{};

AdmissionOptions with(TenantLimits limits) {
    limits.name = "acme";
    return {.bounds = {.requests = 100, .bytes = 1'000'000, .of_tenant = 50}, .tenants = {limits}};
}

TEST(AdmissionTest, WhatIsAdmittedRunsAndEndsAndLeavesNothing) {
    Admission admission(with({}));
    const TenantIndex acme = *admission.tenant("acme");
    const auto admitted = admission.submit({.tenant = acme, .prompt_tokens = 10}, kStart);
    ASSERT_TRUE(admitted);
    EXPECT_EQ(admission.waiting(acme), 1U);
    EXPECT_EQ(admission.next(kStart), admitted->ticket);
    EXPECT_EQ(admission.running(acme), 1U);
    admission.finish(admitted->ticket, {}, kStart);
    admission.finish(admitted->ticket, {}, kStart);
    EXPECT_EQ(admission.running() + admission.waiting(), 0U);
}

TEST(AdmissionTest, RequestsPerMinuteAreCountedAndTheTimeToWaitIsTheBuckets) {
    Admission admission(with({.requests_per_minute = 2}));
    const TenantIndex acme = *admission.tenant("acme");
    ASSERT_TRUE(admission.submit({.tenant = acme}, kStart));
    ASSERT_TRUE(admission.submit({.tenant = acme}, kStart));
    const auto refused = admission.submit({.tenant = acme}, kStart + 10s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, RefusalReason::kTenantRequests);
    EXPECT_EQ(refused.error().retry_after, 20s);
    EXPECT_TRUE(admission.submit({.tenant = acme}, kStart + 30s));
    // Another tenant is not touched by it.
    EXPECT_TRUE(admission.submit({.tenant = *admission.tenant("b")}, kStart + 30s));
}

TEST(AdmissionTest, TokensAreReservedByEstimateAndSettledByUse) {
    Admission admission(with({.tokens_per_minute = 1'000}));
    const TenantIndex acme = *admission.tenant("acme");
    const Submission submission{.tenant = acme, .prompt_tokens = 500, .max_tokens = 200};
    const auto first = admission.submit(submission, kStart);  // Reserves 700.
    ASSERT_TRUE(first);
    const auto refused = admission.submit(submission, kStart);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, RefusalReason::kTenantTokens);
    EXPECT_EQ(refused.error().retry_after, 24s);  // 400 are missing.
    ASSERT_TRUE(admission.next(kStart));
    admission.finish(first->ticket,
                     {.prompt_tokens = 100, .completion_tokens = 20, .complete = true}, kStart);
    // 880 are left, and an answer is now thought to have 20 tokens.
    EXPECT_TRUE(admission.submit(submission, kStart));
}

TEST(AdmissionTest, ARequestThatNeverRanCostsNoTokens) {
    Admission admission(with({.tokens_per_minute = 1'000}));
    const TenantIndex acme = *admission.tenant("acme");
    for (int i = 0; i < 10; ++i) {
        const auto admitted = admission.submit({.tenant = acme, .prompt_tokens = 900}, kStart);
        ASSERT_TRUE(admitted) << i;
        admission.finish(admitted->ticket, {}, kStart);
    }
}

TEST(AdmissionTest, ConcurrencyHoldsATenantBackWhileOthersRun) {
    Admission admission(with({.concurrency = 2}));
    const TenantIndex acme = *admission.tenant("acme");
    const TenantIndex other = *admission.tenant("other");
    std::vector<Ticket> tickets;
    for (int i = 0; i < 3; ++i)
        tickets.push_back(admission.submit({.tenant = acme}, kStart)->ticket);
    tickets.push_back(admission.submit({.tenant = other}, kStart)->ticket);
    std::vector<Ticket> started;
    while (const auto ticket = admission.next(kStart)) started.push_back(*ticket);
    EXPECT_THAT(started, testing::UnorderedElementsAre(tickets[0], tickets[1], tickets[3]));
    EXPECT_FALSE(admission.ready());
    admission.put_back(tickets[1], kStart);
    EXPECT_EQ(admission.next(kStart), tickets[1]);  // Older than the third, so before it.
    admission.finish(tickets[0], {}, kStart);
    EXPECT_EQ(admission.next(kStart), tickets[2]);
}

TEST(AdmissionTest, ExpiredRequestsAreToldOnceAndNeverRun) {
    Admission admission(with({}));
    const TenantIndex acme = *admission.tenant("acme");
    const Ticket brief =
        admission.submit({.tenant = acme, .deadline = kStart + 1s}, kStart)->ticket;
    const Ticket patient = admission.submit({.tenant = acme}, kStart)->ticket;
    EXPECT_EQ(admission.next_deadline(), kStart + 1s);
    EXPECT_THAT(admission.expire(kStart + 1s), ElementsAre(brief));
    EXPECT_THAT(admission.expire(kStart + 1s), ElementsAre());
    EXPECT_EQ(admission.next(kStart + 1s), patient);
}

TEST(AdmissionTest, ATenantsQueueIsBoundedByItself) {
    Admission admission(with({}));
    const TenantIndex acme = *admission.tenant("acme");
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(admission.submit({.tenant = acme}, kStart));
    const auto refused = admission.submit({.tenant = acme}, kStart);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, RefusalReason::kTenantQueue);
    EXPECT_GE(refused.error().retry_after, 1s);
}

TEST(AdmissionTest, AForeseenWaitBeyondTheDeadlineIsRefusedAtOnce) {
    Admission admission(with({}));
    const TenantIndex acme = *admission.tenant("acme");
    Instant now = kStart;
    // One place that takes a second for 100 tokens; five more always wait.
    std::vector<Ticket> tickets;
    for (int i = 0; i < 6; ++i)
        tickets.push_back(admission.submit({.tenant = acme, .prompt_tokens = 100}, now)->ticket);
    ASSERT_TRUE(admission.next(now));
    for (int i = 0; i < 20; ++i) {
        now += 1s;
        admission.finish(tickets[i], {.prompt_tokens = 100}, now);
        ASSERT_TRUE(admission.next(now));
        tickets.push_back(admission.submit({.tenant = acme, .prompt_tokens = 100}, now)->ticket);
    }
    const double foreseen =
        std::chrono::duration<double>(*admission.foreseen_wait(acme, 100, now)).count();
    EXPECT_NEAR(foreseen, 5.0, 1.0);
    const Submission brief{.tenant = acme, .prompt_tokens = 100, .deadline = now + 3s};
    const auto refused = admission.submit(brief, now);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, RefusalReason::kOverload);
    EXPECT_GE(refused.error().retry_after, 1s);
    EXPECT_LE(refused.error().retry_after, 6s);
    // The same, but with time: it may wait. And a tenant that asks for its first place may, too.
    EXPECT_TRUE(
        admission.submit({.tenant = acme, .prompt_tokens = 100, .deadline = now + 60s}, now));
    Submission other = brief;
    other.tenant = *admission.tenant("other");
    EXPECT_TRUE(admission.submit(other, now));
}

}  // namespace
}  // namespace sluice::admission
