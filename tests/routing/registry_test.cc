#include "routing/registry.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::routing {
namespace {

constexpr Load kOne{.requests = 1, .prefill_tokens = 10, .kv_tokens = 10};

class RegistryTest : public testing::Test {
protected:
    WorkerIndex add(PoolIndex pool, std::uint32_t capacity = 0, std::string group = {}) {
        const WorkerIndex worker =
            *registry.add({.pool = pool, .capacity = capacity, .failure_group = std::move(group)});
        registry.set_ready(worker, true);
        return worker;
    }
    Registry registry{16};
};

TEST_F(RegistryTest, OnlyReadyWorkersOfThePoolArePicked) {
    const WorkerIndex other = add(1);
    EXPECT_EQ(registry.pick(0, kOne).error(), NoPick::kNoneReady);
    const WorkerIndex own = add(0);
    EXPECT_EQ(registry.pick(0, kOne)->worker(), own);
    EXPECT_EQ(registry.pick(1, kOne)->worker(), other);
    registry.set_ready(own, false);
    EXPECT_EQ(registry.pick(0, kOne).error(), NoPick::kNoneReady);
    EXPECT_EQ(registry.ready_in(0), 0U);
    EXPECT_EQ(registry.ready_in(1), 1U);
}

TEST_F(RegistryTest, TheLeastLoadedIsPickedAndEqualsTakeTurns) {
    const WorkerIndex first = add(0);
    const WorkerIndex second = add(0);
    const Lease held = *registry.pick(0, kOne);
    EXPECT_EQ(held.worker(), first);
    EXPECT_EQ(registry.pick(0, kOne)->worker(), second);
    EXPECT_EQ(registry.pick(0, kOne)->worker(), second);
    EXPECT_EQ(registry.dispatched(0), 3U);
}

TEST_F(RegistryTest, EqualsTakeTurns) {
    add(0);
    add(0);
    const WorkerIndex before = registry.pick(0, kOne)->worker();
    EXPECT_NE(registry.pick(0, kOne)->worker(), before);
    EXPECT_EQ(registry.pick(0, kOne)->worker(), before);
}

TEST_F(RegistryTest, AWorkerTakesNoMoreThanItHolds) {
    add(0, 2);
    const Lease one = *registry.pick(0, kOne);
    Lease two = *registry.pick(0, kOne);
    EXPECT_EQ(registry.pick(0, kOne).error(), NoPick::kAllBusy);
    EXPECT_EQ(registry.capacity_of(0), 2U);
    two.release();
    EXPECT_TRUE(registry.pick(0, kOne).has_value());
    add(0);
    EXPECT_EQ(registry.capacity_of(0), 0U);
}

TEST_F(RegistryTest, ALowerWeightTakesASmallerShare) {
    const WorkerIndex weak = add(0);
    add(0);
    registry.set_weight(weak, 0.25);
    std::vector<Lease> held;
    int on_weak = 0;
    for (int i = 0; i < 100; ++i) {
        held.push_back(*registry.pick(0, kOne));
        on_weak += held.back().worker() == weak ? 1 : 0;
    }
    EXPECT_NEAR(on_weak, 20, 2);
}

TEST_F(RegistryTest, WhatWasTriedComesLastOrNeverWithItsGroup) {
    const WorkerIndex first = add(0, 0, "rack");
    add(0, 0, "rack");
    Tried tried;
    tried.add(first);
    EXPECT_TRUE(registry.pick(0, kOne, tried).has_value());
    tried.rule = Tried::Rule::kExclude;
    EXPECT_EQ(registry.pick(0, kOne, tried).error(), NoPick::kAllTried);
    const WorkerIndex elsewhere = add(0);
    EXPECT_EQ(registry.pick(0, kOne, tried)->worker(), elsewhere);
    tried.rule = Tried::Rule::kAvoid;
    EXPECT_EQ(registry.pick(0, kOne, tried)->worker(), elsewhere);
}

TEST_F(RegistryTest, MoreWorkersThanPromisedAreRefused) {
    Registry small(1);
    ASSERT_TRUE(small.add({}).has_value());
    EXPECT_FALSE(small.add({}).has_value());
}

}  // namespace
}  // namespace sluice::routing
