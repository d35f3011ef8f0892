#include "net/output_queue.h"

#include <array>

namespace sluice::net {
namespace {

std::string all_of(const OutputQueue& queue) {
    std::array<std::string_view, 16> pieces;
    std::string text;
    for (std::size_t i = 0; i < queue.front(pieces); ++i) text += pieces[i];
    return text;
}

TEST(OutputQueueTest, EverythingLeavesInItsOrderWhateverIsDroppedAtATime) {
    const auto large = std::make_shared<const std::string>(10'000, 's');
    for (const std::size_t step : {1U, 7U, 4'096U, 100'000U}) {
        OutputQueue queue;
        queue.add("head ");
        queue.share({.text = "small ", .owner = large});
        queue.move_in(std::string(5'000, 'm'));
        queue.share({.text = *large, .owner = large});
        queue.add(" tail");
        const std::string expected =
            "head small " + std::string(5'000, 'm') + std::string(10'000, 's') + " tail";
        EXPECT_EQ(queue.bytes(), expected.size());
        std::string left;
        while (!queue.empty()) {
            const std::size_t taken = std::min(step, queue.bytes());
            left += all_of(queue).substr(0, taken);
            queue.drop(taken);
        }
        EXPECT_EQ(left, expected) << step;
    }
}

TEST(OutputQueueTest, WhatIsSharedIsNotCopiedAndLetGoOfOnceItIsOut) {
    auto owner = std::make_shared<const std::string>(1'000'000, 'x');
    const std::weak_ptr<const std::string> alive = owner;
    OutputQueue queue;
    queue.add("head");
    const char* const where = owner->data();
    queue.share({.text = *owner, .owner = std::move(owner)});
    std::array<std::string_view, 4> pieces;
    ASSERT_EQ(queue.front(pieces), 2U);
    EXPECT_EQ(pieces[1].data(), where);
    queue.drop(4 + 999'999);
    EXPECT_FALSE(alive.expired());
    queue.drop(1);
    EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace sluice::net
