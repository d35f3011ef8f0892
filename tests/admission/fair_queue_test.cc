#include "admission/fair_queue.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::admission {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr QueueBounds kWide{.requests = 10'000, .bytes = 1'000'000'000, .of_tenant = 10'000};
constexpr Instant kStart{};

/// Tokens that each tenant was given by `count` pops.
std::vector<double> served(FairQueue& queue, std::size_t tenants, int count) {
    std::vector<double> tokens(tenants);
    for (int i = 0; i < count; ++i) {
        const auto entry = queue.pop();
        if (!entry) break;
        tokens[entry->tenant] += static_cast<double>(entry->cost);
    }
    return tokens;
}

TEST(FairQueueTest, TenantsShareTokensByWeightWhateverTheSizeOfTheirRequests) {
    FairQueue queue(kWide);
    const TenantIndex one = queue.add_tenant(1, 0);
    const TenantIndex two = queue.add_tenant(2, 0);
    Ticket ticket = 0;
    for (int i = 0; i < 4'000; ++i) {
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = one, .cost = 10}));
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = two, .cost = 100}));
    }
    const auto tokens = served(queue, 2, 3'000);
    EXPECT_NEAR(tokens[two] / tokens[one], 2.0, 0.02);
}

TEST(FairQueueTest, AnIdleTenantSavesNothingUpAndLosesNothing) {
    FairQueue queue(kWide);
    const TenantIndex busy = queue.add_tenant(1, 0);
    const TenantIndex late = queue.add_tenant(1, 0);
    Ticket ticket = 0;
    for (int i = 0; i < 2'000; ++i)
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = busy, .cost = 10}));
    (void)served(queue, 2, 500);
    for (int i = 0; i < 500; ++i)
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = late, .cost = 10}));
    const auto tokens = served(queue, 2, 400);
    EXPECT_NEAR(tokens[busy], tokens[late], 10.0);
}

TEST(FairQueueTest, NobodyWaitsWhileThereIsSomethingToServe) {
    FairQueue queue(kWide);
    const TenantIndex held = queue.add_tenant(1, 0);
    const TenantIndex free = queue.add_tenant(1, 0);
    ASSERT_TRUE(queue.push({.ticket = 1, .tenant = held}));
    ASSERT_TRUE(queue.push({.ticket = 2, .tenant = free}));
    queue.hold_back(held, true);
    EXPECT_EQ(queue.pop()->ticket, 2U);
    EXPECT_FALSE(queue.ready());
    EXPECT_FALSE(queue.pop());
    queue.hold_back(held, false);
    EXPECT_EQ(queue.pop()->ticket, 1U);
}

TEST(FairQueueTest, HigherTenantsGoFirstAndWithinATenantItsOwnPrioritiesThenAge) {
    FairQueue queue(kWide);
    const TenantIndex low = queue.add_tenant(100, 0);
    const TenantIndex high = queue.add_tenant(1, 1);
    ASSERT_TRUE(queue.push({.ticket = 1, .tenant = low}));
    ASSERT_TRUE(queue.push({.ticket = 2, .tenant = high}));
    ASSERT_TRUE(queue.push({.ticket = 3, .tenant = high, .priority = 2}));
    ASSERT_TRUE(queue.push({.ticket = 4, .tenant = high, .priority = 2}));
    ASSERT_TRUE(queue.push({.ticket = 5, .tenant = high, .priority = -1}));
    std::vector<Ticket> order;
    while (const auto entry = queue.pop()) order.push_back(entry->ticket);
    EXPECT_THAT(order, ElementsAre(3, 4, 2, 5, 1));
}

TEST(FairQueueTest, ARequestThatIsPutBackComesNextAgainAndIsNotPaidForTwice) {
    FairQueue queue(kWide);
    const TenantIndex one = queue.add_tenant(1, 0);
    const TenantIndex two = queue.add_tenant(1, 0);
    Ticket ticket = 0;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = one, .cost = 10}));
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = two, .cost = 10}));
    }
    for (int i = 0; i < 50; ++i) {
        const auto entry = queue.pop();
        queue.put_back(*entry);
        EXPECT_EQ(queue.pop()->ticket, entry->ticket);
    }
    const auto tokens = served(queue, 2, 100);
    EXPECT_NEAR(tokens[one], tokens[two], 10.0);
}

TEST(FairQueueTest, WhatCostMoreThanItSaidIsPaidForLater) {
    FairQueue queue(kWide);
    const TenantIndex liar = queue.add_tenant(1, 0);
    const TenantIndex honest = queue.add_tenant(1, 0);
    Ticket ticket = 0;
    std::vector<double> real(2);
    for (int i = 0; i < 2'000; ++i) {
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = liar, .cost = 1}));
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = honest, .cost = 100}));
    }
    for (int i = 0; i < 1'000; ++i) {
        const auto entry = queue.pop();
        real[entry->tenant] += 100;
        queue.correct(entry->tenant, 100 - static_cast<double>(entry->cost));
    }
    EXPECT_NEAR(real[liar], real[honest], 200.0);
}

TEST(FairQueueTest, DeadlinesPassInTheirOrder) {
    FairQueue queue(kWide);
    const TenantIndex tenant = queue.add_tenant(1, 0);
    ASSERT_TRUE(queue.push({.ticket = 1, .tenant = tenant, .deadline = kStart + 3s}));
    ASSERT_TRUE(queue.push({.ticket = 2, .tenant = tenant, .deadline = kStart + 1s}));
    ASSERT_TRUE(queue.push({.ticket = 3, .tenant = tenant}));
    EXPECT_EQ(queue.next_deadline(), kStart + 1s);
    EXPECT_THAT(queue.expire(kStart + 999ms), IsEmpty());
    EXPECT_THAT(queue.expire(kStart + 5s), ElementsAre(2, 1));
    EXPECT_EQ(queue.next_deadline(), Instant::max());
    EXPECT_EQ(queue.pop()->ticket, 3U);
}

TEST(FairQueueTest, AFullQueueTakesThePlaceOfWhoeverHoldsMost) {
    FairQueue queue({.requests = 10, .bytes = 1'000'000, .of_tenant = 100});
    const TenantIndex flood = queue.add_tenant(1, 0);
    const TenantIndex quiet = queue.add_tenant(1, 0);
    Ticket ticket = 0;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = flood}));
    EXPECT_EQ(queue.push({.ticket = ++ticket, .tenant = flood}).error(), FairQueue::Full::kQueue);
    for (int i = 0; i < 4; ++i) {
        const auto pushed = queue.push({.ticket = ++ticket, .tenant = quiet});
        ASSERT_TRUE(pushed);
        EXPECT_THAT(*pushed, ElementsAre(static_cast<Ticket>(10 - i)));  // The newest of the flood.
    }
    ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = quiet}));
    EXPECT_EQ(queue.push({.ticket = ++ticket, .tenant = quiet}).error(), FairQueue::Full::kQueue);
    EXPECT_EQ(queue.size(flood), 5U);
    EXPECT_EQ(queue.size(), 10U);
}

TEST(FairQueueTest, LowerTenantsGiveWayFirstAndNeverDisplaceHigherOnes) {
    FairQueue queue({.requests = 4, .bytes = 1'000'000, .of_tenant = 100});
    const TenantIndex low = queue.add_tenant(1, 0);
    const TenantIndex high = queue.add_tenant(1, 1);
    Ticket ticket = 0;
    ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = low}));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = high}));
    EXPECT_FALSE(queue.push({.ticket = 100, .tenant = low}));
    EXPECT_THAT(*queue.push({.ticket = 101, .tenant = high}), ElementsAre(1));
    EXPECT_FALSE(queue.push({.ticket = 102, .tenant = low}));
}

TEST(FairQueueTest, BytesAreBoundedAndALargeRequestThatCannotFitDisplacesNobody) {
    FairQueue queue({.requests = 100, .bytes = 1'000, .of_tenant = 100});
    const TenantIndex one = queue.add_tenant(1, 0);
    const TenantIndex two = queue.add_tenant(1, 0);
    Ticket ticket = 0;
    for (int i = 0; i < 9; ++i)
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = one, .bytes = 100}));
    EXPECT_FALSE(queue.push({.ticket = 100, .tenant = two, .bytes = 1'001}));
    EXPECT_FALSE(queue.push({.ticket = 101, .tenant = two, .bytes = 900}));
    EXPECT_EQ(queue.bytes(), 900U);
    EXPECT_THAT(*queue.push({.ticket = 102, .tenant = two, .bytes = 400}), ElementsAre(9, 8, 7));
    EXPECT_EQ(queue.bytes(), 1'000U);
}

TEST(FairQueueTest, TheWorkAheadIsWhatIsServedBefore) {
    FairQueue queue(kWide);
    const TenantIndex flood = queue.add_tenant(1, 0);
    const TenantIndex quiet = queue.add_tenant(1, 0);
    const TenantIndex high = queue.add_tenant(1, 5);
    Ticket ticket = 0;
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = flood, .cost = 10}));
    EXPECT_EQ(queue.work_ahead(flood, 10), 1'000.0);
    EXPECT_EQ(queue.work_ahead(quiet, 10), 10.0);
    EXPECT_EQ(queue.work_ahead(high, 10), 0.0);
    ASSERT_TRUE(queue.push({.ticket = ++ticket, .tenant = high, .cost = 70}));
    EXPECT_EQ(queue.work_ahead(quiet, 10), 80.0);
}

// Whatever happens in whatever order, bounds hold, nothing is lost and nothing comes twice.
TEST(FairQueueTest, RandomLives) {
    std::mt19937 random(1);
    const QueueBounds bounds{.requests = 50, .bytes = 5'000, .of_tenant = 30};
    FairQueue queue(bounds);
    for (int i = 0; i < 6; ++i) queue.add_tenant(1.0 + i, i % 2);
    std::map<Ticket, QueueEntry> waiting;
    std::vector<QueueEntry> out;
    Ticket ticket = 0;
    for (int step = 0; step < 100'000; ++step) {
        const Instant now = kStart + std::chrono::milliseconds(step);
        const auto tenant = static_cast<TenantIndex>(random() % 6);
        switch (random() % 8) {
            case 0:
            case 1:
            case 2: {
                const QueueEntry entry{.ticket = ++ticket,
                                       .tenant = tenant,
                                       .priority = static_cast<int>(random() % 3),
                                       .cost = 1 + random() % 1'000,
                                       .bytes = random() % 400,
                                       .deadline = now + std::chrono::milliseconds(random() % 900)};
                const auto pushed = queue.push(entry);
                if (!pushed) break;
                waiting.emplace(entry.ticket, entry);
                for (const Ticket gone : *pushed) ASSERT_EQ(waiting.erase(gone), 1U);
                ASSERT_LE(queue.size(), bounds.requests);
                ASSERT_LE(queue.bytes(), bounds.bytes);
                break;
            }
            case 3:
                if (const auto entry = queue.pop()) {
                    ASSERT_EQ(waiting.erase(entry->ticket), 1U);
                    out.push_back(*entry);
                }
                break;
            case 4:
                if (out.empty() || random() % 4 != 0) break;
                queue.put_back(out.back());
                waiting.emplace(out.back().ticket, out.back());
                out.pop_back();
                break;
            case 5: queue.hold_back(tenant, random() % 2 == 0); break;
            case 6:
                for (const Ticket gone : queue.expire(now)) ASSERT_EQ(waiting.erase(gone), 1U);
                break;
            case 7: {
                const Ticket any = ticket - random() % 60;
                ASSERT_EQ(queue.remove(any), waiting.erase(any) == 1);
                queue.correct(tenant, static_cast<double>(random() % 100) - 50);
                break;
            }
        }
        ASSERT_EQ(queue.size(), waiting.size());
    }
    for (TenantIndex tenant = 0; tenant < 6; ++tenant) queue.hold_back(tenant, false);
    while (const auto entry = queue.pop()) ASSERT_EQ(waiting.erase(entry->ticket), 1U);
    EXPECT_TRUE(waiting.empty());
    EXPECT_EQ(queue.bytes(), 0U);
}

}  // namespace
}  // namespace sluice::admission
