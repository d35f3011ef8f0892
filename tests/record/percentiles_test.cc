#include "record/percentiles.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace sluice::record {
namespace {

TEST(PercentilesTest, AreMillisecondsOfEitherKind) {
    Samples samples;
    for (int i = 1; i <= 100; ++i) samples.add(i, 1);
    const Percentiles exact = percentiles(samples);
    EXPECT_EQ(exact.p50, 50.0);
    EXPECT_EQ(exact.p90, 90.0);
    EXPECT_EQ(exact.p99, 99.0);
    LatencySketch sketch;
    for (int i = 1; i <= 100; ++i) sketch.add(std::chrono::milliseconds(i));
    EXPECT_NEAR(*percentiles(sketch).p90, 90.0, 5.0);
}

TEST(PercentilesTest, NothingMeasuredIsNull) {
    EXPECT_EQ(boost::json::serialize(to_object(percentiles(Samples()))),
              R"({"p50":null,"p90":null,"p99":null})");
}

}  // namespace
}  // namespace sluice::record
