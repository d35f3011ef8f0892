#include "base/metrics.h"

#include <gmock/gmock.h>

#include <thread>

#include "base/limits.h"
#include "base/process_stats.h"

namespace sluice::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, ACounterWithLabelsIsOneSeriesPerCombination) {
    Registry registry;
    const auto requests =
        registry.counter("sluice_requests_total", "Requests", {"pool", "outcome"});
    requests.with({"stable", "ok"}).add();
    requests.with({"stable", "ok"}).add(2);
    requests.with({"stable", "error"}).add();
    const std::string text = registry.text();
    EXPECT_THAT(text, HasSubstr("# TYPE sluice_requests_total counter\n"));
    EXPECT_THAT(text, HasSubstr("sluice_requests_total{outcome=\"ok\",pool=\"stable\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("sluice_requests_total{outcome=\"error\",pool=\"stable\"} 1\n"));
}

TEST(MetricsTest, AMetricWithoutLabelsShowsBeforeItIsUsed) {
    Registry registry;
    const auto open = registry.gauge("sluice_open_streams", "Open streams");
    EXPECT_THAT(registry.text(), HasSubstr("\nsluice_open_streams 0\n"));
    Gauge gauge = open.with({});
    gauge.set(5);
    gauge.add(-2);
    EXPECT_EQ(open.with({}).value(), 3);
}

TEST(MetricsTest, AHistogramCountsCumulatively) {
    Registry registry;
    Histogram ttft =
        registry.histogram("sluice_ttft_seconds", "Time to first token", {0.1, 1.0}).with({});
    ttft.observe(0.05);
    ttft.observe(0.5);
    ttft.observe(50);
    const std::string text = registry.text();
    EXPECT_THAT(text, HasSubstr("sluice_ttft_seconds_bucket{le=\"0.1\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("sluice_ttft_seconds_bucket{le=\"1\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("sluice_ttft_seconds_bucket{le=\"+Inf\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("sluice_ttft_seconds_count 3\n"));
}

TEST(MetricsTest, ProcessMetricsAreReadAtEachScrape) {
    const Registry registry;
    const std::string text = registry.text();
    for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes",
                             "process_open_fds", "process_start_time_seconds"}) {
        EXPECT_THAT(text, HasSubstr(std::string("\n") + name + " ")) << name;
    }
    EXPECT_THAT(text, Not(HasSubstr("process_resident_memory_bytes 0\n")));
}

TEST(MetricsTest, SeriesBeyondTheBoundCountAsOther) {
    Registry registry;
    const auto requests = registry.counter("requests_total", "Requests", {"model"});
    const std::size_t beyond = 10;
    for (std::size_t i = 0; i < limits::kMetricSeries + beyond; ++i) {
        requests.with({"model-" + std::to_string(i)}).add();
    }
    EXPECT_EQ(requests.with({"other"}).value(), beyond);
    EXPECT_EQ(requests.with({"model-0"}).value(), 1);
}

TEST(MetricsTest, ALabelValueIsBoundedAndEscaped) {
    Registry registry;
    const auto requests = registry.counter("requests_total", "Requests", {"model"});
    requests.with({"a\"b\nc"}).add();
    requests.with({std::string(limits::kMetricLabelBytes - 1, 'x') + "\u00e9tail"}).add();
    const std::string text = registry.text();
    EXPECT_THAT(text, HasSubstr(R"(model="a\"b\nc")"));
    EXPECT_THAT(text, HasSubstr(std::string(limits::kMetricLabelBytes - 1, 'x') + "\"}"));
}

TEST(MetricsTest, ThreadsMayCountAndScrapeAtOnce) {
    Registry registry;
    const auto requests = registry.counter("requests_total", "Requests", {"pool"});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int n = 0; n < 500; ++n) requests.with({std::to_string((i + n) % 7)}).add();
        });
    }
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(registry.text().empty());
    for (std::thread& thread : threads) thread.join();
    double total = 0;
    for (int i = 0; i < 7; ++i) total += requests.with({std::to_string(i)}).value();
    EXPECT_EQ(total, 2000);
}

TEST(ProcessStatsTest, ANameWithSpacesAndBracketsDoesNotShiftTheFields) {
    EXPECT_EQ(stat_field("12 (a) b (c)) S 3 4", 4), 3U);
    EXPECT_EQ(stat_field("12 (a) S 3 4", 5), 4U);
    EXPECT_EQ(stat_field("12 (a) S 3 4", 6), 0U);
    EXPECT_EQ(stat_field("", 4), 0U);
}

}  // namespace
}  // namespace sluice::metrics
