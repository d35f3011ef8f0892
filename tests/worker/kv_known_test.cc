#include "worker/kv_known.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

using std::chrono::minutes;

kv::BlockKey key(int i) { return sha256(std::to_string(i)); }

TEST(KvKnownTest, ForgetsWhatIsOld) {
    KvKnown known;
    const KvKnown::Time start{minutes(100)};
    known.add(key(1), start);
    EXPECT_TRUE(known.contains(key(1), start + minutes(4)));
    EXPECT_FALSE(known.contains(key(2), start + minutes(4)));
    known.add(key(2), start + minutes(6));
    EXPECT_TRUE(known.contains(key(1), start + minutes(7)));
    EXPECT_FALSE(known.contains(key(1), start + minutes(12)));
    EXPECT_FALSE(known.contains(key(2), start + minutes(60)));
}

TEST(KvKnownTest, IsBounded) {
    KvKnown known;
    const KvKnown::Time start{minutes(100)};
    const int count = static_cast<int>(3 * KvKnown::kNames);
    for (int i = 0; i < count; ++i) known.add(key(i), start);
    EXPECT_FALSE(known.contains(key(0), start));
    EXPECT_TRUE(known.contains(key(count - 1), start));
    known.clear();
    EXPECT_FALSE(known.contains(key(count - 1), start));
}

}  // namespace
}  // namespace sluice::worker
