#include "record/card.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <boost/json/parse.hpp>
#include <cmath>
#include <fstream>
#include <random>

#include "record/card_builder.h"
#include "tests/places.h"
#include "tests/record/support.h"

namespace sluice::record {
namespace {

VersionManifest manifest_of(const std::string& engine) {
    return {.engine = engine, .engine_version = "1", .hardware = "a CPU"};
}
const std::string kNative = digest(manifest_of("native"));
const std::string kOther = digest(manifest_of("vllm"));

/// How the requests of one pool go.
struct Behaviour {
    double ttft_ms = 100.0;
    double gap_ms = 20.0;
    double failures = 0.0;
    double differing = 0.0;
    Outcome failure = Outcome::kError;
    std::string fingerprint = kNative;
};

class Traffic {
public:
    explicit Traffic(std::uint64_t seed) : random_(seed) {}

    RequestRow request(const std::string& pool, const Behaviour& behaviour,
                       const std::string& compared_with = {}) {
        RequestRow row;
        row.rid = std::to_string(next_++);
        row.pool = pool;
        row.kind = RequestKind::kSeeded;
        row.prompt_tokens = 1'000;
        row.cached_tokens = random_() % 1'000;
        row.completion_tokens = 20;
        std::lognormal_distribution<double> spread(0.0, 0.3);
        row.duration = us(behaviour.ttft_ms * 3.0);
        row.legs = {{.pool = pool,
                     .fingerprint = behaviour.fingerprint,
                     .held = std::chrono::microseconds(row.duration)}};
        if (chance(behaviour.failures)) {
            row.outcome = behaviour.failure;
        } else {
            row.ttft = us(behaviour.ttft_ms * spread(random_));
            for (int i = 0; i < 20; ++i) row.gaps.add(us(behaviour.gap_ms * spread(random_)));
        }
        if (!compared_with.empty()) {
            row.role = RequestRole::kShadow;
            row.comparison = Comparison{.pool = compared_with};
            if (chance(behaviour.differing)) row.comparison->differences = {"text"};
        }
        return row;
    }

    bool chance(double share) {
        return std::uniform_real_distribution<double>(0.0, 1.0)(random_) < share;
    }
    std::mt19937_64& random() { return random_; }

private:
    static std::chrono::microseconds us(double ms) {
        return std::chrono::microseconds(std::llround(ms * 1000.0));
    }
    std::mt19937_64 random_;
    int next_ = 0;
};

CardBuilder builder() {
    return {{.baseline = "stable", .candidate = "candidate", .since = "1h"},
            {{kNative, manifest_of("native")}, {kOther, manifest_of("vllm")}}};
}

/// `count` answers of the baseline, each with a copy on the candidate.
Card card_of(int count, const Behaviour& baseline, const Behaviour& candidate, std::uint64_t seed,
             int self_copies = 0) {
    Traffic traffic(seed);
    CardBuilder cards = builder();
    for (int i = 0; i < count; ++i) {
        cards.add(traffic.request("stable", baseline), 0.01);
        cards.add(traffic.request("candidate", candidate, "stable"), 0.02);
        if (i < self_copies) cards.add(traffic.request("stable", baseline, "stable"), 0.01);
    }
    return cards.build();
}

std::string metrics_that_are(const Card& card, Verdict verdict) {
    std::string names;
    for (const CardRow& row : card.rows) {
        for (const Judgement& judgement : row.judgements) {
            if (judgement.verdict == verdict) names += judgement.metric + " ";
        }
    }
    return names;
}

TEST(CardTest, TwoEqualPoolsAreTheSameWhateverTheSeed) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Card card = card_of(1'000, {}, {}, seed);
        EXPECT_EQ(card.verdict(), Verdict::kSame)
            << seed << ": " << metrics_that_are(card, Verdict::kWorse)
            << metrics_that_are(card, Verdict::kInsufficient);
    }
}

TEST(CardTest, EachFaultShowsInItsOwnMetric) {
    const auto worse = [](const Behaviour& candidate) {
        return metrics_that_are(card_of(400, {}, candidate, 9), Verdict::kWorse);
    };
    EXPECT_EQ(worse({.ttft_ms = 150.0}), "ttft_p50 ");
    EXPECT_EQ(worse({.gap_ms = 30.0}), "tbt_p50 tbt_p99 ");
    EXPECT_EQ(worse({.failures = 0.1}), "success ");
    EXPECT_EQ(worse({.differing = 0.1}), "differs ");
    EXPECT_EQ(worse({}), "");
}

TEST(CardTest, AFasterCandidateIsBetter) {
    const Card card = card_of(400, {}, {.ttft_ms = 50.0}, 3);
    EXPECT_EQ(card.verdict(), Verdict::kBetter);
}

TEST(CardTest, FewSamplesAllowNoVerdict) {
    EXPECT_EQ(card_of(20, {}, {}, 1).verdict(), Verdict::kInsufficient);
    EXPECT_EQ(card_of(0, {}, {}, 1).verdict(), Verdict::kInsufficient);
}

TEST(CardTest, WhatTheClientCausedIsNotHeldAgainstThePool) {
    const Card card = card_of(400, {}, {.failures = 0.3, .failure = Outcome::kClientGone}, 5);
    EXPECT_EQ(metrics_that_are(card, Verdict::kWorse), "");
    EXPECT_LT(*card.rows[1].success_rate(), 0.8);
}

// An engine that differs from itself in 20 % is no worse for differing in 20 % from the baseline.
TEST(CardTest, DifferencesCountBeyondTheNoiseOfTheBaselineOnly) {
    const Behaviour noisy{.differing = 0.2, .fingerprint = kOther};
    const Card same = card_of(600, noisy, noisy, 2, 600);
    EXPECT_EQ(metrics_that_are(same, Verdict::kWorse), "");
    EXPECT_NEAR(*same.rows[1].noise_floor, 0.2, 0.05);
    const Card worse = card_of(600, noisy, {.differing = 0.5, .fingerprint = kOther}, 2, 600);
    EXPECT_EQ(metrics_that_are(worse, Verdict::kWorse), "differs ");
}

TEST(CardTest, WithoutAnAAPairDifferencesOfAnInexactEngineSayNothing) {
    const Behaviour other{.differing = 0.2, .fingerprint = kOther};
    const Card card = card_of(600, other, other, 2);
    EXPECT_EQ(metrics_that_are(card, Verdict::kInsufficient), "differs ");
    EXPECT_EQ(card.rows[1].noise_floor, std::nullopt);
    EXPECT_EQ(card_of(600, {}, {}, 2).rows[1].noise_floor, 0.0);
}

TEST(CardTest, EachLengthAndKindHasRowsOfItsOwn) {
    CardBuilder cards = builder();
    Traffic traffic(1);
    RequestRow row = traffic.request("stable", {});
    cards.add(row, 0.0);
    row.prompt_tokens = 100'000;
    cards.add(row, 0.0);
    row.kind = RequestKind::kTools;
    cards.add(row, 0.0);
    row.pool = "a third";
    cards.add(row, 0.0);
    const Card card = cards.build();
    ASSERT_EQ(card.rows.size(), 3U);
    EXPECT_EQ(card.rows[0].bucket, LengthBucket::kTo16k);
    EXPECT_EQ(card.rows[2].kind, RequestKind::kTools);
}

TEST(CardTest, AWeightCountsAsThatManyRequests) {
    CardBuilder cards = builder();
    Traffic traffic(1);
    RequestRow row = traffic.request("stable", {});
    row.weight = 7;
    cards.add(row, 0.7);
    const Card card = cards.build();
    EXPECT_EQ(card.rows[0].requests, 7U);
    EXPECT_EQ(card.rows[0].successes(), 7U);
    EXPECT_DOUBLE_EQ(*card.rows[0].cost_per_success(), 0.1);
    EXPECT_EQ(card.rows[0].gaps.count(), 140U);
}

TEST(CardTest, ItsKeysAreTheOnesThatChecksRead) {
    const auto card = boost::json::parse(to_json(card_of(60, {}, {.failures = 0.2}, 4)));
    for (const char* const key : {"baseline", "candidate", "since", "rows", "versions"})
        EXPECT_TRUE(card.as_object().contains(key)) << key;
    const auto& row = card.at("rows").at(1).as_object();
    for (const char* const key :
         {"bucket", "kind", "pool", "requests", "success_rate", "outcomes", "ttft_ms", "tbt_ms",
          "cached_share", "recomputed_share", "device_memory_bytes", "cost_per_success",
          "differs_share", "noise_floor", "verdict"})
        EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_TRUE(row.at("ttft_ms").as_object().contains("p90"));
    EXPECT_EQ(card.at("versions").at("stable").at(0).at("hardware"), "a CPU");
}

// ---- The independent computation ------------------------------------------------------------------

/// Everything that rows can be: both roles, all outcomes, weights, A/A pairs, several versions.
std::vector<std::pair<RequestRow, double>> wild_rows(std::uint64_t seed) {
    Traffic traffic(seed);
    auto& random = traffic.random();
    std::vector<std::pair<RequestRow, double>> rows;
    for (int i = 0; i < 3'000; ++i) {
        const std::string pool = i % 3 == 0 ? "candidate" : i % 50 == 1 ? "third" : "stable";
        const std::string with = i % 3 == 0 || i % 5 == 0 ? "stable" : "";
        const Behaviour behaviour{.ttft_ms = pool == "stable" ? 80.0 : 110.0,
                                  .failures = 0.1,
                                  .differing = 0.15,
                                  .failure = static_cast<Outcome>(1 + random() % (kOutcomes - 1)),
                                  .fingerprint = seed % 2 == 0 || i % 9 == 0 ? kNative : kOther};
        RequestRow row = traffic.request(pool, behaviour, with);
        row.prompt_tokens = std::uint64_t{1} << (random() % 20);
        row.cached_tokens = row.prompt_tokens / 2;
        row.recomputed_tokens = random() % 3;
        row.kind = static_cast<RequestKind>(random() % kKinds);
        row.weight = random() % 10 == 0 ? 1 + random() % 5 : 1;
        row.device_memory_bytes = random() % 2 * 1'000'000;
        rows.emplace_back(row, static_cast<double>(random() % 1'000) / 1'000.0);
    }
    return rows;
}

int run_check(const std::string& rows, const std::string& card) {
    const std::string command =
        fmt::format("python3 {}/tests/record/card_check.py {} {}", kSourceDir, rows, card);
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CardTest, AnIndependentScriptComputesEveryNumberTheSame) {
    const TemporaryFolder folder;
    for (const std::uint64_t seed : {1, 2, 3}) {
        CardBuilder cards = builder();
        std::ofstream rows(folder.file("rows.jsonl"));
        for (const auto& [row, cost] : wild_rows(seed)) {
            cards.add(row, cost);
            rows << to_json(row, cost) << "\n";
        }
        rows.close();
        const std::string json = to_json(cards.build());
        std::ofstream(folder.file("card.json")) << json;
        EXPECT_EQ(run_check(folder.file("rows.jsonl"), folder.file("card.json")), 0) << seed;
        // The script would notice.
        const std::size_t at = json.find("\"requests\":") + 11;
        std::ofstream(folder.file("wrong.json")) << json.substr(0, at) << "9" << json.substr(at);
        EXPECT_EQ(run_check(folder.file("rows.jsonl"), folder.file("wrong.json")), 1);
    }
}

// ---- For people -----------------------------------------------------------------------------------

TEST(CardTest, TheTextNamesBothSidesAndWhy) {
    const std::string text = to_text(card_of(400, {}, {.ttft_ms = 200.0}, 1));
    EXPECT_NE(text.find("candidate beside stable"), std::string::npos);
    EXPECT_NE(text.find("ttft_p50: worse"), std::string::npos);
    EXPECT_NE(text.find(kNative), std::string::npos);
    EXPECT_NE(to_text(card_of(0, {}, {}, 1)).find("No request"), std::string::npos);
}

TEST(CardTest, ThePageNeedsNothingFromElsewhereAndRunsNothing) {
    const std::string html = to_html(card_of(400, {}, {.ttft_ms = 200.0}, 1));
    for (const char* const part :
         {"<script", "http://", "https://", "url(", "@import", "<link", "<img", "src="})
        EXPECT_EQ(html.find(part), std::string::npos) << part;
    EXPECT_NE(html.find("<svg"), std::string::npos);
    EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
    EXPECT_NE(html.find("Time to first token"), std::string::npos);
}

TEST(CardTest, WhatEnginesSayOfThemselvesCannotBecomeMarkupOrLines) {
    const std::string evil = "<script>alert(1)</script>\n\"x\" forged";
    const VersionManifest manifest{.engine = evil, .model = evil, .hardware = evil};
    CardBuilder cards({.baseline = "stable", .candidate = evil, .since = evil},
                      {{digest(manifest), manifest}});
    Traffic traffic(1);
    for (int i = 0; i < 60; ++i) {
        cards.add(traffic.request("stable", {.fingerprint = digest(manifest)}), 0.0);
        cards.add(traffic.request(evil, {.fingerprint = evil}, "stable"), 0.0);
    }
    const Card card = cards.build();
    EXPECT_EQ(to_html(card).find("<script"), std::string::npos);
    EXPECT_NE(to_html(card).find("&lt;script&gt;"), std::string::npos);
    EXPECT_EQ(to_text(card).find("\n\"x\" forged"), std::string::npos);
    EXPECT_TRUE(boost::json::parse(to_json(card)).is_object());
}

}  // namespace
}  // namespace sluice::record
