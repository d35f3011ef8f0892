#include "kv/worth_order.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace sluice::kv {
namespace {

using Gone = std::vector<std::ptrdiff_t>;

class WorthOrderTest : public testing::Test {
protected:
    WorthOrderTest() {
        for (WorthOrder::Node& node : nodes_) order_.add(node);
    }
    std::ptrdiff_t take() {
        WorthOrder::Node* const node = order_.take_next();
        return node == nullptr ? -1 : node - nodes_.data();
    }
    /// Numbers of all that goes until nothing more does.
    Gone drain() {
        Gone gone;
        for (std::ptrdiff_t each = take(); each >= 0; each = take()) gone.push_back(each);
        return gone;
    }

    std::array<WorthOrder::Node, 4> nodes_;
    WorthOrder order_;
};

TEST_F(WorthOrderTest, OfEqualsTheLeastRecentlyUsedGoesFirst) {
    for (const std::size_t i : {1U, 0U, 3U, 2U}) order_.use(nodes_.at(i));
    EXPECT_EQ(drain(), (Gone{1, 0, 3, 2}));
}

TEST_F(WorthOrderTest, WhatWasUsedMoreGoesLater) {
    order_.use(nodes_[0]);
    order_.use(nodes_[0]);
    order_.use(nodes_[2]);
    EXPECT_EQ(drain(), (Gone{1, 3, 2, 0}));
}

TEST_F(WorthOrderTest, WhatCostsMoreGoesLater) {
    WorthOrder::Node dear;
    WorthOrder::Node cheap;
    order_.add(dear, 2.5F);
    order_.add(cheap, 0.5F);
    order_.use(nodes_[0]);
    EXPECT_EQ(order_.take_next(), &cheap);
    EXPECT_EQ(take(), 1);
    EXPECT_EQ(take(), 2);
    EXPECT_EQ(take(), 3);
    EXPECT_EQ(take(), 0);
    EXPECT_EQ(order_.take_next(), &dear);
}

TEST_F(WorthOrderTest, WhatWasUsedOftenAndNoMoreGoesInTheEnd) {
    for (int i = 0; i < 1'000; ++i) order_.use(nodes_[0]);
    std::vector<WorthOrder::Node> others(64);
    std::size_t rounds = 0;
    for (std::size_t next = 0; take() != 0 && rounds < others.size(); ++rounds)
        order_.add(others[next++]);
    EXPECT_GT(rounds, 3U);
    EXPECT_LT(rounds, others.size());
    for (WorthOrder::Node& each : others) order_.remove(each);
}

TEST_F(WorthOrderTest, HeldOnesStay) {
    order_.hold(nodes_[0]);
    order_.hold(nodes_[2]);
    EXPECT_EQ(drain(), (Gone{1, 3}));
}

TEST_F(WorthOrderTest, WhatWasSetAsideGoesNextWhenItsLastHoldEnds) {
    order_.hold(nodes_[0]);
    order_.hold(nodes_[0]);
    EXPECT_EQ(take(), 1);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(take(), 2);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(drain(), (Gone{0, 3}));
}

TEST_F(WorthOrderTest, AUseCountsWhileItIsSetAside) {
    order_.hold(nodes_[0]);
    EXPECT_EQ(take(), 1);
    order_.use(nodes_[0]);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(drain(), (Gone{2, 3, 0}));
}

TEST_F(WorthOrderTest, WhatWasSetAsideCanLeave) {
    order_.hold(nodes_[0]);
    EXPECT_EQ(take(), 1);
    order_.remove(nodes_[0]);
    order_.remove(nodes_[3]);
    EXPECT_EQ(drain(), (Gone{2}));
}

/// Against the plain reading of what the header says.
TEST(WorthOrderModelTest, TakesWhatIsWorthLeastWhateverHappens) {
    struct Known {
        WorthOrder::Node node;
        double worth = 0;
        std::uint64_t used = 0;
        double cost = 1;
        int uses = 0;
        bool in = false;
    };
    std::mt19937_64 random(5);
    std::vector<Known> all(50);
    WorthOrder order;
    double age = 0;
    std::uint64_t now = 0;
    for (int step = 0; step < 20'000; ++step) {
        Known& some = all[random() % all.size()];
        const auto rate = [&] {
            some.uses = std::min(some.uses + 1, 8);
            some.worth = age + some.uses * some.cost;
            some.used = ++now;
        };
        if (random() % 4 == 0) {
            Known* least = nullptr;
            for (Known& each : all)
                if (each.in && (least == nullptr || std::pair(each.worth, each.used) <
                                                        std::pair(least->worth, least->used)))
                    least = &each;
            WorthOrder::Node* const taken = order.take_next();
            ASSERT_EQ(taken, least == nullptr ? nullptr : &least->node);
            if (least == nullptr) continue;
            least->in = false;
            age = std::max(age, least->worth);
        } else if (!some.in) {
            some.cost = static_cast<double>(1 + random() % 3);
            some.uses = 0;
            rate();
            some.in = true;
            order.add(some.node, static_cast<float>(some.cost));
        } else if (random() % 5 == 0) {
            order.remove(some.node);
            some.in = false;
        } else {
            rate();
            order.use(some.node);
        }
    }
}

}  // namespace
}  // namespace sluice::kv
