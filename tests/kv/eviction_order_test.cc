#include "kv/eviction_order.h"

#include <array>
#include <vector>

namespace sluice::kv {
namespace {

class EvictionOrderTest : public testing::Test {
protected:
    EvictionOrderTest() {
        for (EvictionNode& node : nodes_) order_.touch(node);
    }
    /// Numbers of all that goes until nothing more does.
    std::vector<std::ptrdiff_t> drain() {
        std::vector<std::ptrdiff_t> gone;
        while (EvictionNode* const node = order_.coldest()) {
            order_.remove(*node);
            gone.push_back(node - nodes_.data());
        }
        return gone;
    }
    using Order = std::vector<std::ptrdiff_t>;

    std::array<EvictionNode, 4> nodes_;
    EvictionOrder order_;
};

TEST_F(EvictionOrderTest, TheLeastRecentlyUsedGoesFirst) {
    order_.touch(nodes_[1]);
    order_.touch(nodes_[0]);
    EXPECT_EQ(drain(), (Order{2, 3, 1, 0}));
}

TEST_F(EvictionOrderTest, HeldOnesStay) {
    order_.hold(nodes_[0]);
    order_.hold(nodes_[2]);
    EXPECT_EQ(drain(), (Order{1, 3}));
}

TEST_F(EvictionOrderTest, WhatWasSetAsideGoesNextWhenItsLastHoldEnds) {
    order_.hold(nodes_[0]);
    order_.hold(nodes_[0]);
    EXPECT_EQ(order_.coldest(), nodes_.data() + 1);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(order_.coldest(), nodes_.data() + 1);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(drain(), (Order{0, 1, 2, 3}));
}

TEST_F(EvictionOrderTest, AUseBringsBackWhatWasSetAside) {
    order_.hold(nodes_[0]);
    EXPECT_EQ(order_.coldest(), nodes_.data() + 1);
    order_.touch(nodes_[0]);
    order_.unhold(nodes_[0]);
    EXPECT_EQ(drain(), (Order{1, 2, 3, 0}));
}

TEST_F(EvictionOrderTest, WhatWasSetAsideCanLeave) {
    order_.hold(nodes_[0]);
    EXPECT_EQ(order_.coldest(), nodes_.data() + 1);
    order_.remove(nodes_[0]);
    EXPECT_EQ(drain(), (Order{1, 2, 3}));
}

}  // namespace
}  // namespace sluice::kv
