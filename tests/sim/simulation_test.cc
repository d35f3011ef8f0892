#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/sim_page.h"
#include "sim/sim_report.h"
#include "trace/random.h"

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Kind = Fault::Kind;

constexpr RunTitle kTitle{.trace = "", .policy = "", .workers = 0, .seed = 0};

std::vector<SimWork> mix(const std::string& shapes, std::size_t requests, double rate,
                         std::uint64_t seed = 1) {
    return make_workload(
        plan_load(*trace::parse_mix(shapes), {.requests = requests, .rate = rate, .seed = seed}),
        {.seed = seed});
}

/// Conversations that grow: `users` of them, `turns` each, a block more every time.
std::vector<SimWork> conversations(std::uint32_t users, std::uint32_t turns, double rate) {
    std::vector<trace::PlannedRequest> plan;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
        for (std::uint32_t user = 0; user < users; ++user) {
            trace::PlannedRequest request{.input_tokens = (turn + 4) * 512, .output_tokens = 50};
            request.at = std::chrono::microseconds(
                static_cast<std::int64_t>(1e6 * static_cast<double>(plan.size()) / rate));
            request.text_seed = plan.size() + 1'000'000;
            for (std::uint32_t block = 0; block < turn + 4; ++block)
                request.blocks.push_back(block == 0 ? 0 : user * 1'000 + block);
            plan.push_back(std::move(request));
        }
    }
    return make_workload(plan, {});
}

SimulationOptions workers(std::uint32_t count) {
    SimulationOptions options;
    options.gateway.fleet.full = count;
    return options;
}

Results run(const SimulationOptions& options, const std::vector<SimWork>& work,
            const std::vector<Fault>& faults = {}) {
    return Simulation(options, work, faults).run();
}

std::vector<SimWork> at_once(const std::vector<std::uint32_t>& prompts) {
    std::vector<trace::PlannedRequest> plan;
    for (const std::uint32_t prompt : prompts)
        plan.push_back({.input_tokens = prompt, .output_tokens = 1});
    return make_workload(plan, {});
}

std::uint64_t count(const Results& results, const char* outcome) {
    const auto found = results.outcomes.find(outcome);
    return found == results.outcomes.end() ? 0 : found->second;
}

std::uint64_t tokens_between(const Results& results, std::size_t from, std::size_t until) {
    std::uint64_t tokens = 0;
    for (std::size_t second = from; second < until; ++second)
        tokens += results.timeline.stretches()[second].tokens;
    return tokens;
}

TEST(SimulationTest, EveryRequestEndsOnceAndLeavesNothing) {
    const auto work = mix("chat", 500, 5.0);
    const Results results = run(workers(4), work);
    EXPECT_EQ(results.all.requests, 500u);
    EXPECT_EQ(results.all.completed, 500u);
    EXPECT_EQ(results.left_over, 0u);
    std::uint64_t tokens = 0;
    for (const SimWork& each : work) tokens += each.answer_tokens;
    std::uint64_t came = 0;
    for (const Timeline::Stretch& stretch : results.timeline.stretches()) came += stretch.tokens;
    EXPECT_EQ(came, tokens);
}

TEST(SimulationTest, TheSameSeedGivesTheSameBytes) {
    std::vector<Fault> faults;
    trace::Random random(9);
    for (int i = 0; i < 20; ++i) {
        faults.push_back({.at = seconds(5 * i),
                          .kind = static_cast<Kind>(random.next() % 6),
                          .worker = static_cast<std::uint32_t>(random.next() % 4),
                          .duration = seconds(4),
                          .factor = 3.0,
                          .share = 0.3});
    }
    const auto bytes = [&] {
        SimulationOptions options = workers(4);
        options.seed = 5;
        RunResult result{.title = kTitle,
                         .results = run(options, conversations(20, 20, 4.0), faults)};
        return to_text(kTitle, result.results) + to_json(kTitle, result.results) +
               to_html({result}) + ttft_svg({result}) + throughput_svg({result});
    };
    const std::string first = bytes();
    EXPECT_EQ(first, bytes());
    EXPECT_NE(first.find("resumes"), std::string::npos);
}

TEST(SimulationTest, TheDefaultPolicyFindsCachedPrefixesAndKeepsTheBalance) {
    const auto work = conversations(101, 30, 25.0);
    const auto results = [&](routing::Policy policy) {
        SimulationOptions options = workers(8);
        options.gateway.fleet.policy = policy;
        options.gateway.fleet.engine.blocks = 1'000;
        return run(options, work);
    };
    const Results ours = results(routing::Policy::kDefault);
    const Results turns = results(routing::Policy::kRoundRobin);
    EXPECT_GT(ours.all.hit_share(), 1.5 * turns.all.hit_share());
    EXPECT_LT(ours.imbalance(), 1.4);
    const Results overlap = results(routing::Policy::kOverlap);
    EXPECT_GT(*overlap.all.ttft_ms.quantile(0.9), 5.0 * *ours.all.ttft_ms.quantile(0.9));
}

/// Pools that are too small for all conversations, and nodes that are not.
SimulationOptions with_nodes(std::uint32_t count) {
    SimulationOptions options = workers(count);
    options.gateway.fleet.engine.blocks = 40;
    options.gateway.fleet.nodes = SharedCacheOptions{.blocks = 0, .nodes = 3};
    return options;
}

TEST(SimulationTest, WhatPoolsGaveUpIsFoundAtTheNodesByWhomeverItIsSentTo) {
    const auto work = conversations(40, 8, 8.0);
    SimulationOptions options = with_nodes(4);
    options.gateway.fleet.policy = routing::Policy::kRoundRobin;
    const Results nodes = run(options, work);
    options.gateway.fleet.nodes.reset();
    const Results none = run(options, work);
    EXPECT_LT(none.all.hit_share(), 0.3);
    EXPECT_EQ(none.all.hit_share(CacheSource::kNode), 0.0);
    EXPECT_GT(nodes.all.hit_share(CacheSource::kNode), 0.4);
    EXPECT_DOUBLE_EQ(nodes.all.hit_share(), nodes.all.hit_share(CacheSource::kPool) +
                                                nodes.all.hit_share(CacheSource::kNode));
    EXPECT_LT(*nodes.all.ttft_ms.quantile(0.9), *none.all.ttft_ms.quantile(0.9));
    EXPECT_GT(nodes.nodes.blocks, 0u);
    EXPECT_EQ(nodes.nodes.nodes, 3u);
    EXPECT_EQ(nodes.left_over, 0u);
}

TEST(SimulationTest, AWorkerThatLostEverythingFindsItAtTheNodes) {
    const auto work = conversations(10, 8, 4.0);
    const std::vector<Fault> faults{
        {.at = seconds(10), .kind = Kind::kCrash, .worker = 0, .duration = seconds(1)}};
    SimulationOptions options = workers(1);
    options.gateway.fleet.dram = SharedCacheOptions{.blocks = 0};
    const Results alone = run(options, work, faults);
    options.gateway.fleet.nodes = SharedCacheOptions{.blocks = 0, .nodes = 2};
    const Results nodes = run(options, work, faults);
    EXPECT_EQ(alone.all.hit_share(CacheSource::kDram), 0.0) << "the pool is large enough";
    EXPECT_GT(nodes.all.hit_share(CacheSource::kNode), 0.0);
    EXPECT_GT(nodes.all.hit_share(), alone.all.hit_share());
}

TEST(SimulationTest, AHotPrefixAtTheNodesPinsNobody) {
    std::vector<trace::PlannedRequest> plan;
    for (std::uint32_t i = 0; i < 400; ++i) {
        trace::PlannedRequest request{.input_tokens = 20 * 512 + 100, .output_tokens = 20};
        request.at = std::chrono::milliseconds(250 * i);
        request.text_seed = 1'000'000 + std::uint64_t{100} * i;
        for (std::uint32_t block = 0; block < 20; ++block) request.blocks.push_back(block);
        plan.push_back(std::move(request));
    }
    const Results results = run(with_nodes(4), make_workload(plan, {}));
    EXPECT_GT(results.all.hit_share(), 0.9);
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const WorkerResults& worker : results.workers) {
        most = std::max(most, worker.decode_tokens);
        all += worker.decode_tokens;
    }
    EXPECT_LT(4.0 * static_cast<double>(most) / static_cast<double>(all), 1.3);
}

TEST(SimulationTest, WithTiersTheSameSeedGivesTheSameBytes) {
    const auto work = conversations(20, 6, 8.0);
    SimulationOptions options = with_nodes(3);
    options.gateway.fleet.nodes->blocks = 60;
    options.gateway.fleet.dram = SharedCacheOptions{.blocks = 50};
    const std::string once = to_json(kTitle, run(options, work));
    EXPECT_EQ(once, to_json(kTitle, run(options, work)));
    EXPECT_NE(once.find("\"dram\":"), std::string::npos);
}

TEST(SimulationTest, WithoutRoomRequestsAreTurnedAwayAndTheRestIsServed) {
    SimulationOptions options = workers(1);
    options.gateway.fleet.engine.running_max = 8;
    options.gateway.queue_requests = 20;
    const Results results = run(options, mix("2000/200", 400, 20.0));
    EXPECT_GT(results.all.rejected, 100u);
    EXPECT_EQ(results.all.rejected + results.all.completed, 400u);
    EXPECT_EQ(results.left_over, 0u);
}

// A prompt of a minute computes all the time: nobody calls that a stall.
TEST(SimulationTest, ALongPromptIsNoStall) {
    SimulationOptions options = workers(2);
    options.gateway.fleet.engine.blocks = 4'000;
    const Results results = run(options, mix("700000/10", 2, 0.1));
    EXPECT_EQ(results.all.completed, 2u);
    EXPECT_EQ(results.retries, 0u);
    EXPECT_GT(results.elapsed, minutes(1));
}

TEST(SimulationTest, AStalledWorkerIsFoundAndItsRequestsGoOnElsewhere) {
    const Results results =
        run(workers(3), mix("chat", 300, 5.0),
            {{.at = seconds(20), .kind = Kind::kStall, .duration = minutes(10)}});
    EXPECT_EQ(results.all.completed, 300u);
    EXPECT_GT(results.resumes + results.retries, 0u);
    EXPECT_LT(results.elapsed, minutes(3));
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, ARestartWithAnotherModelAttractsNoTraffic) {
    const auto work = mix("chat", 600, 5.0);
    const std::vector<Fault> faults{
        {.at = seconds(20), .kind = Kind::kOtherModel, .worker = 1, .duration = seconds(60)}};
    Simulation simulation(workers(3), work, faults);
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    const auto computed = [&] { return simulation.gateway().fleet().engine(1).totals(); };
    simulation.queue().at(Time(seconds(22)), [&] { before = computed().prefill_tokens; });
    simulation.queue().at(Time(seconds(79)), [&] { after = computed().prefill_tokens; });
    const Results results = simulation.run();
    EXPECT_EQ(results.all.completed, 600u);
    EXPECT_EQ(before, after);
    EXPECT_GT(computed().prefill_tokens, after);  // Back with the right one, it works again.
}

// ---- The backlog ----------------------------------------------------------------------------------

TEST(SimulationTest, AfterMostRequestsWereCancelledThroughputIsBackInFiveSeconds) {
    SimulationOptions options = workers(4);
    options.gateway.fleet.engine.running_max = 16;
    const Results results = run(options, mix("1000/100", 6'000, 40.0),
                                {{.at = seconds(60), .kind = Kind::kCancel, .share = 0.9}});
    EXPECT_GT(count(results, "client_gone"), 50u);
    const std::uint64_t before = tokens_between(results, 50, 60);
    EXPECT_GT(before, 10'000u);
    EXPECT_GE(tokens_between(results, 65, 75), before * 95 / 100);
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, ARollingRestartOfEveryWorkerUnderLoadCostsNoRequest) {
    std::vector<Fault> faults;
    for (std::uint32_t worker = 0; worker < 6; ++worker) {
        faults.push_back({.at = seconds(20 + 20 * worker),
                          .kind = Kind::kRestart,
                          .worker = worker,
                          .duration = seconds(10)});
    }
    const Results results = run(workers(6), mix("chat", 1'500, 10.0), faults);
    EXPECT_EQ(results.all.completed, 1'500u);
    EXPECT_GT(results.resumes, 0u);
    for (const WorkerResults& worker : results.workers) EXPECT_EQ(worker.crashes, 1u);
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, InACrashStormEverythingCompletesOrEndsByItsBudget) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        trace::Random random(seed);
        std::vector<Fault> faults;
        Duration at{};
        for (int i = 0; i < 60; ++i) {
            at += milliseconds(200 + random.next() % 4'000);
            faults.push_back({.at = at,
                              .kind = random.next() % 5 == 0 ? Kind::kStall : Kind::kCrash,
                              .worker = static_cast<std::uint32_t>(random.next() % 6),
                              .duration = milliseconds(500 + random.next() % 8'000)});
        }
        SimulationOptions options = workers(6);
        if (seed % 2 == 0) {
            options.gateway.fleet.full = 0;
            options.gateway.fleet.prefill = 2;
            options.gateway.fleet.decode = 4;
        }
        const Results results = run(options, mix("chat", 600, 8.0, seed), faults);
        EXPECT_EQ(results.all.requests, 600u) << seed;
        EXPECT_EQ(results.all.completed + count(results, "worker_lost"), 600u) << seed;
        EXPECT_GT(results.all.completed, 570u) << seed;
        EXPECT_EQ(results.left_over, 0u) << seed;
    }
}

TEST(SimulationTest, APromptThatCrashesEnginesEndsAfterTwoLossesAndTheThirdWorkerLives) {
    auto work = mix("chat", 200, 4.0);
    work[50].poison = true;
    work[150].poison = true;
    work[150].chain = work[50].chain;  // The same prompt again, while the first one is remembered.
    work[150].prompt_tokens = work[50].prompt_tokens;
    const Results results = run(workers(3), work);
    std::uint64_t crashes = 0;
    for (const WorkerResults& worker : results.workers) crashes += worker.crashes;
    EXPECT_EQ(crashes, 2u);
    EXPECT_EQ(count(results, "worker_lost"), 1u);
    EXPECT_EQ(results.all.rejected, 1u);
    EXPECT_EQ(results.all.completed, 198u);
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, TenThousandQueuedRequestsThatAreCancelledLeaveNothing) {
    SimulationOptions options = workers(1);
    options.gateway.fleet.engine.running_max = 4;
    options.gateway.queue_requests = 20'000;
    options.gateway.queue_wait = std::chrono::hours(100);
    options.gateway.deadline = std::chrono::hours(100);
    const auto work = mix("4000/1000", 10'010, 1e5);
    const std::vector<Fault> faults{{.at = seconds(10), .kind = Kind::kCancel, .share = 1.0}};
    Simulation simulation(options, work, faults);
    std::size_t waiting = 0;
    simulation.queue().at(Time(milliseconds(9'999)),
                          [&] { waiting = simulation.gateway().live(); });
    const Results results = simulation.run();
    EXPECT_GE(waiting, 10'000u);
    EXPECT_EQ(count(results, "client_gone"), waiting);
    EXPECT_LE(results.elapsed, seconds(11));
    EXPECT_EQ(results.left_over, 0u);
}

// What a dead worker did is computed again little by little: those who come now still get through.
TEST(SimulationTest, ResumesAfterALossDoNotStampedeTheSurvivors) {
    const auto worst_after_loss = [](std::uint64_t resume_tokens) {
        SimulationOptions options = workers(4);
        options.gateway.resume_tokens = resume_tokens;
        options.gateway.deadline = std::chrono::hours(1);
        options.gateway.fleet.policy = routing::Policy::kLeastLoaded;
        // Long streams that are under way when their workers die, and short questions all the time.
        auto work = mix("30000/30000", 24, 100.0);
        for (SimWork each : mix("500/5", 600, 2.0, 2)) {
            each.at += seconds(60);  // The long prompts are computed.
            work.push_back(std::move(each));
        }
        std::ranges::stable_sort(work, {}, &SimWork::at);
        const std::vector<Fault> faults{
            {.at = seconds(120), .kind = Kind::kCrash, .worker = 0, .duration = minutes(5)},
            {.at = seconds(120), .kind = Kind::kCrash, .worker = 1, .duration = minutes(5)}};
        Results results = run(options, work, faults);
        EXPECT_EQ(results.all.completed, work.size());
        EXPECT_EQ(results.left_over, 0u);
        return *results.tiers[0].ttft_ms.quantile(0.99);
    };
    const double paced = worst_after_loss(dispatch::ResumePacer::kTokensPerWorker);
    const double all_at_once = worst_after_loss(1'000'000'000);
    EXPECT_LT(paced, 8'000.0);
    EXPECT_GT(all_at_once, 2.0 * paced);
}

// ---- Split roles ----------------------------------------------------------------------------------

TEST(SimulationTest, PromptsAreComputedHereAndAnswersThere) {
    SimulationOptions options = workers(0);
    options.gateway.fleet.prefill = 2;
    options.gateway.fleet.decode = 2;
    const Results results = run(options, mix("chat", 400, 5.0));
    EXPECT_EQ(results.all.completed, 400u);
    EXPECT_EQ(results.left_over, 0u);
    for (int worker = 0; worker < 4; ++worker) {
        const WorkerResults& each = results.workers[static_cast<std::size_t>(worker)];
        EXPECT_EQ(each.prefill_tokens > 0, worker < 2);
        EXPECT_EQ(each.decode_tokens > 0, worker >= 2);
    }
}

TEST(SimulationTest, WithoutDecodeWorkersPrefillWorkersDoItAll) {
    SimulationOptions options = workers(0);
    options.gateway.fleet.prefill = 2;
    options.gateway.fleet.decode = 1;
    const Results results =
        run(options, mix("chat", 200, 4.0),
            {{.at = seconds(10), .kind = Kind::kCrash, .worker = 2, .duration = minutes(60)}});
    EXPECT_EQ(results.all.completed, 200u);
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, ImagesAreEncodedFirst) {
    SimulationOptions options = workers(2);
    options.gateway.fleet.encode = 1;
    auto work = mix("chat", 200, 4.0);
    for (std::size_t i = 0; i < work.size(); i += 2) work[i].image_tokens = 1'000;
    Simulation simulation(options, work, {});
    const Results results = simulation.run();
    EXPECT_EQ(results.all.completed, 200u);
    EXPECT_EQ(simulation.gateway().fleet().engine(2).totals().encode_tokens, 100'000u);
    EXPECT_EQ(results.left_over, 0u);
}

TEST(SimulationTest, PromptsThatComeTogetherWaitForEachOthersTokens) {
    SimulationOptions options = workers(1);
    EngineParameters& engine = options.gateway.fleet.engine;
    engine = {.step_us = 1, .prefill_row_us = 1e-6, .request_us = 0, .request_token_us = 1'000};
    const Results results = run(options, at_once({100, 10, 50}));
    // By arrival, not by length: 100 ms, 110, 160.
    EXPECT_NEAR(*results.all.ttft_ms.quantile(0.3), 100.0, 2.0);
    EXPECT_NEAR(*results.all.ttft_ms.quantile(0.6), 110.0, 2.0);
    EXPECT_NEAR(*results.all.ttft_ms.quantile(1.0), 160.0, 2.0);
}

}  // namespace
}  // namespace sluice::sim
