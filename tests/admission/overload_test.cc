// What the service promises when more is asked of it than it can do, on a virtual clock.

#include "admission/admission.h"
#include "tests/admission/service_simulator.h"

namespace sluice::admission {
namespace {

using namespace std::chrono_literals;

// 16 places, 5,000 tokens/s of prefill and 50 of decode: a mean request of 500 + 200 tokens takes
// 4.1 s, so the service does 3.9 requests a second.
constexpr std::size_t kPlaces = 16;
constexpr double kPrefill = 5'000;
constexpr double kDecode = 50;
constexpr double kCapacity = kPlaces / (500 / kPrefill + 200 / kDecode);
constexpr Duration kLength = 20min;
constexpr QueueBounds kBounds{.requests = 512, .bytes = 4'000'000, .of_tenant = 512};

AdmissionOptions options() { return {.bounds = kBounds}; }

double goodput(const std::map<std::string, TenantOutcome>& outcomes) {
    double tokens = 0;
    for (const auto& [name, outcome] : outcomes) tokens += outcome.good_tokens;
    return tokens;
}

/// The most good tokens the service gives at any load, over the same time.
double peak_goodput(Duration deadline) {
    double peak = 0;
    for (const double load : {0.8, 0.9, 1.0, 1.1, 1.25, 1.5}) {
        ServiceSimulator service(options(), kPlaces, kPrefill, kDecode);
        peak = std::max(
            peak,
            goodput(service.run(
                {{.tenant = "a", .requests_per_second = load * kCapacity, .deadline = deadline}},
                kLength, 7)));
    }
    return peak;
}

class OverloadTest : public testing::TestWithParam<Duration> {};

TEST_P(OverloadTest, AtFourTimesTheLoadGoodputStaysAndTheRestIsRefusedAtOnce) {
    const Duration deadline = GetParam();
    ServiceSimulator service(options(), kPlaces, kPrefill, kDecode);
    const auto outcomes = service.run(
        {{.tenant = "a", .requests_per_second = 4 * kCapacity, .deadline = deadline}}, kLength, 7);
    const TenantOutcome& a = outcomes.at("a");
    EXPECT_GE(goodput(outcomes), 0.9 * peak_goodput(deadline));
    // Of those that were let in nearly all are answered in time: the rest learned so at once.
    const auto let_in = static_cast<double>(a.sent - a.refused);
    EXPECT_GE(static_cast<double>(a.good), 0.9 * let_in)
        << a.late << " late, " << a.expired << " expired, " << a.gave_way << " gave way";
    EXPECT_GE(static_cast<double>(a.refused), 0.6 * static_cast<double>(a.sent));
    EXPECT_EQ(a.sent, a.good + a.late + a.expired + a.refused + a.gave_way);
    EXPECT_LE(service.most_waiting(), kBounds.requests);
    EXPECT_LE(service.most_bytes(), kBounds.bytes);
    EXPECT_EQ(service.admission().waiting() + service.admission().running(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Deadlines, OverloadTest, testing::Values(15s, 30s, 120s));

// Without the forecast the same service answers too late: the test above can fail.
TEST(FloodTest, AQueueWithoutAForecastWouldAnswerTooLate) {
    AdmissionOptions blind = options();
    blind.bounds.requests = blind.bounds.of_tenant = 100'000;
    blind.bounds.bytes = 1'000'000'000;
    // Deadlines that the queue doesn't see are those of a queue that doesn't look.
    ServiceSimulator service(blind, kPlaces, kPrefill, kDecode);
    const auto outcomes = service.run(
        {{.tenant = "a", .requests_per_second = 4 * kCapacity, .deadline = 1h}}, kLength, 7);
    std::uint64_t in_time = 0;
    for (const double latency : outcomes.at("a").latencies) in_time += latency <= 15;
    EXPECT_LT(static_cast<double>(in_time), 0.1 * static_cast<double>(outcomes.at("a").sent) / 4);
}

double quiet_p99(double flood) {
    std::vector<Traffic> traffic = {
        {.tenant = "quiet", .requests_per_second = 0.3 * kCapacity, .deadline = 60s},
        {.tenant = "other", .requests_per_second = 0.3 * kCapacity, .deadline = 60s}};
    if (flood > 0) {
        traffic.push_back(
            {.tenant = "flood", .requests_per_second = flood * kCapacity, .deadline = 60s});
    }
    ServiceSimulator service(options(), kPlaces, kPrefill, kDecode);
    const auto outcomes = service.run(traffic, kLength, 7);
    const TenantOutcome& quiet = outcomes.at("quiet");
    EXPECT_GE(static_cast<double>(quiet.good), 0.99 * static_cast<double>(quiet.sent));
    return quiet.p99();
}

TEST(FloodTest, OneTenantsFloodDoesNotRaiseAnothersP99ByMoreThanTwice) {
    const double alone = quiet_p99(0);
    EXPECT_LE(quiet_p99(4), 2 * alone);
    EXPECT_LE(quiet_p99(20), 2 * alone);
}

TEST(FloodTest, UnderOverloadTenantsGetTokensByTheirWeights) {
    AdmissionOptions weighted = options();
    weighted.tenants = {{.name = "one", .weight = 1}, {.name = "three", .weight = 3}};
    ServiceSimulator service(weighted, kPlaces, kPrefill, kDecode);
    const auto outcomes =
        service.run({{.tenant = "one", .requests_per_second = 3 * kCapacity, .deadline = 10min},
                     {.tenant = "three",
                      .requests_per_second = 3 * kCapacity,
                      .mean_prompt = 2'000,
                      .mean_completion = 100,
                      .deadline = 10min}},
                    kLength, 7);
    EXPECT_NEAR(outcomes.at("three").good_tokens / outcomes.at("one").good_tokens, 3.0, 0.3);
}

}  // namespace
}  // namespace sluice::admission
