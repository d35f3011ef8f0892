#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/sim_options.h"
#include "app/text_file.h"
#include "base/limits.h"
#include "base/units.h"
#include "sim/sim_page.h"
#include "sim/simulation.h"

namespace sluice::app {
namespace {

constexpr std::size_t kMixRequests = 1'000;
constexpr double kMixRate = 1.0;

// ---- From options to a run ------------------------------------------------------------------------

Result<std::vector<trace::PlannedRequest>> make_plan(const SimOptions& options) {
    trace::PlanOptions plan{
        .requests = options.requests, .rate = options.rate, .seed = options.seed};
    std::vector<trace::PlannedRequest> requests;
    if (options.trace.empty()) {
        const auto shapes = trace::parse_mix(options.mix);
        if (!shapes) return std::unexpected(shapes.error());
        if (plan.requests == 0) plan.requests = kMixRequests;
        if (!plan.rate) plan.rate = kMixRate;
        requests = plan_load(*shapes, plan);
    } else {
        auto recorded = trace::read_trace(options.trace);
        if (!recorded) return std::unexpected(recorded.error());
        if (!options.slice.empty()) {
            const auto slice = sim::parse_slice(options.slice);
            if (!slice) return std::unexpected(slice.error());
            if (const auto done = sim::cut(*recorded, *slice); !done)
                return std::unexpected(done.error());
        }
        if (plan.requests == 0) plan.requests = recorded->requests.size();
        requests = plan_load(*recorded, plan);
    }
    for (trace::PlannedRequest& request : requests) {
        if (options.input_max > 0)
            request.input_tokens = std::min(request.input_tokens, options.input_max);
        if (options.output_max > 0)
            request.output_tokens = std::min(request.output_tokens, options.output_max);
    }
    return requests;
}

Result<sim::EngineParameters> make_engine(const SimOptions& options) {
    sim::EngineParameters engine;
    if (!options.engine.empty()) {
        const auto read = sim::read_engine_parameters(options.engine);
        if (!read) return std::unexpected(read.error());
        engine = *read;
    }
    if (options.blocks) engine.blocks = *options.blocks;
    if (options.prefill_rate) engine.prefill_row_us = 1e6 / *options.prefill_rate;
    if (options.attention) {
        engine.prefill_attended_us =
            *options.attention > 0.0 ? engine.prefill_row_us / *options.attention : 0.0;
    }
    engine.dram_token_us = options.kv_dram_load.value_or(engine.dram_token_us);
    engine.node_token_us = options.kv_node_load.value_or(engine.node_token_us);
    if (options.order == "shortest") engine.order = sim::PrefillOrder::kShortest;
    if (options.order == "arrival") engine.order = sim::PrefillOrder::kArrival;
    return engine;
}

/// What `memory` holds of the engine's KV, in blocks; empty: without end, which is 0.
Result<std::uint32_t> blocks_in(const std::string& memory, const std::string& flag,
                                const sim::EngineParameters& engine) {
    if (memory.empty()) return 0;
    const auto bytes = parse_bytes(memory);
    if (!bytes) return std::unexpected(bytes.error().within(flag));
    const std::uint64_t blocks =
        *bytes / (std::uint64_t{engine.kv_token_bytes} * trace::kTraceBlockTokens);
    if (blocks == 0) return std::unexpected(Error::invalid("holds not one block", flag));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, limits::kTraceTokens));
}

Result<void> add_tiers(const SimOptions& options, sim::FleetOptions& fleet) {
    if (options.kv_nodes == 0 && !options.kv_node_dram.empty())
        return std::unexpected(Error::invalid("needs --kv-nodes", "--kv-node-dram"));
    sim::SharedCacheOptions cache{.policy = *sim::parse_cache_policy(options.kv_policy)};
    if (fleet.engine.prefill_attended_us > 0.0)
        cache.attention_tokens = fleet.engine.prefill_row_us / fleet.engine.prefill_attended_us;
    if (!options.kv_dram.empty()) {
        const auto blocks = blocks_in(options.kv_dram, "--kv-dram", fleet.engine);
        if (!blocks) return std::unexpected(blocks.error());
        fleet.dram = cache;
        fleet.dram->blocks = *blocks;
    }
    if (options.kv_nodes > 0) {
        const auto blocks = blocks_in(options.kv_node_dram, "--kv-node-dram", fleet.engine);
        if (!blocks) return std::unexpected(blocks.error());
        cache.nodes = options.kv_nodes;
        cache.blocks = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(std::uint64_t{*blocks} * cache.nodes, UINT32_MAX));
        fleet.nodes = cache;
    }
    return {};
}

Result<std::chrono::milliseconds> duration(const std::string& text, const std::string& flag) {
    auto value = parse_duration(text);
    if (!value) return std::unexpected(value.error().within(flag));
    return value;
}

Result<sim::SimulationOptions> make_simulation(const SimOptions& options) {
    const auto engine = make_engine(options);
    if (!engine) return std::unexpected(engine.error());
    const auto deadline = duration(options.deadline, "--deadline");
    if (!deadline) return std::unexpected(deadline.error());
    const auto ttft = duration(options.slo_ttft, "--slo-ttft");
    if (!ttft) return std::unexpected(ttft.error());
    const auto tbt = duration(options.slo_tbt, "--slo-tbt");
    if (!tbt) return std::unexpected(tbt.error());
    const bool split = options.prefill + options.decode > 0;
    if (split && (options.prefill == 0 || options.decode == 0))
        return std::unexpected(Error::invalid("need each other", "--prefill and --decode"));
    sim::SimulationOptions simulation;
    simulation.gateway.fleet = {.full = split ? 0 : options.workers,
                                .encode = options.encode,
                                .prefill = options.prefill,
                                .decode = options.decode,
                                .engine = *engine,
                                .tiers = !options.no_tiers,
                                .per_machine = options.per_machine,
                                .seed = options.seed};
    sim::FleetOptions& fleet = simulation.gateway.fleet;
    if (const auto added = add_tiers(options, fleet); !added) return std::unexpected(added.error());
    const std::uint64_t workers =
        std::uint64_t{fleet.full} + fleet.encode + fleet.prefill + fleet.decode;
    if (workers > limits::kSimWorkers)
        return std::unexpected(Error::out_of_range("workers", workers, limits::kSimWorkers + 1));
    simulation.gateway.deadline = *deadline;
    simulation.objectives = {.ttft = *ttft, .tbt = *tbt};
    simulation.seed = options.seed;
    return simulation;
}

std::uint32_t workers_of(const sim::FleetOptions& fleet) {
    return fleet.full + fleet.encode + fleet.prefill + fleet.decode;
}

struct Prepared {
    sim::SimulationOptions simulation;
    std::vector<sim::SimWork> work;
    std::vector<sim::Fault> faults;
    std::vector<routing::Policy> policies;
};

Result<Prepared> prepare(const SimOptions& options) {
    auto simulation = make_simulation(options);
    if (!simulation) return std::unexpected(simulation.error());
    Prepared prepared{.simulation = *simulation};
    for (const std::string& name : options.policies)
        prepared.policies.push_back(*routing::parse_policy(name));
    if (!options.faults.empty()) {
        auto faults =
            sim::read_faults(options.faults, workers_of(simulation->gateway.fleet), options.seed);
        if (!faults) return std::unexpected(faults.error());
        prepared.faults = std::move(*faults);
    }
    const auto plan = make_plan(options);
    if (!plan) return std::unexpected(plan.error());
    prepared.work = sim::make_workload(*plan, {.speed = options.speed,
                                               .image_share = options.image_share,
                                               .image_tokens = options.image_tokens,
                                               .seed = options.seed});
    return prepared;
}

// ---- The run --------------------------------------------------------------------------------------

/// A line on a terminal while it takes long; nothing in a log.
class Progress {
public:
    explicit Progress(std::string policy) : policy_(std::move(policy)) {}
    ~Progress() {
        if (terminal_) std::fputs("\r\033[K", stderr);
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void operator()(const sim::SimProgress& now) const {
        if (!terminal_) return;
        std::fputs(fmt::format("\r{}: {:.0f} s, {} sent, {} ended\033[K", policy_,
                               sim::seconds(now.now.time_since_epoch()), now.sent, now.ended)
                       .c_str(),
                   stderr);
    }

private:
    std::string policy_;
    bool terminal_ = isatty(STDERR_FILENO) == 1;
};

sim::RunResult simulate(const SimOptions& options, Prepared& prepared, routing::Policy policy) {
    prepared.simulation.gateway.fleet.policy = policy;
    const std::string name(to_string(policy));
    const Progress progress(name);
    sim::Simulation simulation(prepared.simulation, prepared.work, prepared.faults);
    sim::Results results = simulation.run(std::cref(progress));
    return {.title = {.trace = options.trace.empty() ? options.mix : options.trace,
                      .policy = name,
                      .workers = workers_of(prepared.simulation.gateway.fleet),
                      .seed = options.seed,
                      .speed = options.speed},
            .results = std::move(results)};
}

Result<void> write_files(const std::string& folder, const std::vector<sim::RunResult>& runs) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) return std::unexpected(Error::io("cannot create", failure.value(), folder));
    std::string text;
    std::string json;
    for (const sim::RunResult& run : runs) {
        text += (text.empty() ? "" : "\n") + to_text(run.title, run.results);
        json += to_json(run.title, run.results) + "\n";
    }
    const auto write = [&](const char* name, const std::string& content) {
        return write_text_file((std::filesystem::path(folder) / name).string(), content);
    };
    if (auto done = write("report.txt", text); !done) return done;
    if (auto done = write("report.jsonl", json); !done) return done;
    if (auto done = write("ttft.svg", ttft_svg(runs)); !done) return done;
    if (auto done = write("throughput.svg", throughput_svg(runs)); !done) return done;
    return write("index.html", to_html(runs));
}

int run(const SimOptions& options) {
    if (options.trace.empty() == options.mix.empty())
        return fail(kWrongUse, "say what is sent: --trace FILE or --mix MIX");
    auto prepared = prepare(options);
    if (!prepared)
        return fail(is_unreadable(prepared.error()) ? kCannotStart : kWrongUse, prepared.error());
    std::vector<sim::RunResult> runs;
    for (const routing::Policy policy : prepared->policies) {
        runs.push_back(simulate(options, *prepared, policy));
        const sim::RunResult& run = runs.back();
        if (options.json) {
            print(to_json(run.title, run.results) + "\n");
        } else {
            print((runs.size() > 1 ? "\n" : "") + to_text(run.title, run.results));
        }
        std::fflush(stdout);
    }
    if (!options.out.empty()) {
        if (const auto written = write_files(options.out, runs); !written)
            return fail(kFailed, written.error());
    }
    return kDone;
}

}  // namespace

Run define_sim(CLI::App& command) {
    auto options = std::make_shared<SimOptions>();
    add_sim_options(command, *options);
    return [options] { return run(*options); };
}

}  // namespace sluice::app
