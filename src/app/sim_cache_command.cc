#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/text_file.h"
#include "base/limits.h"
#include "sim/cache_plot.h"
#include "sim/cache_replay.h"
#include "trace/load_plan.h"
#include "trace/trace.h"

namespace sluice::app {
namespace {

struct Options {
    std::string trace;
    std::vector<std::string> policies{"worth"};
    std::vector<std::uint32_t> blocks{0};
    std::vector<std::uint32_t> nodes{1};
    double attention = 50'000.0;
    std::string plot;
    bool json = false;
};

Result<std::vector<sim::SimWork>> read_work(const Options& options) {
    const auto recorded = trace::read_trace(options.trace);
    if (!recorded) return std::unexpected(recorded.error());
    const trace::PlanOptions plan{.requests = recorded->requests.size(), .rate = {}, .seed = 0};
    return sim::make_workload(plan_load(*recorded, plan), {});
}

std::string to_json(const Options& options, const sim::CacheRun& run) {
    return fmt::format(
        R"({{"trace":"{}","policy":"{}","blocks":{},"nodes":{},"prompt_tokens":{},)"
        R"("usable_share":{:.6f},"usable_block_share":{:.6f},"present_share":{:.6f},)"
        R"("evictions":{},"imbalance":{:.4f}}})"
        "\n",
        options.trace.substr(options.trace.rfind('/') + 1), to_string(run.options.policy),
        run.options.blocks, run.options.nodes, run.results.prompt_tokens,
        run.results.usable_share(), run.results.usable_block_share(), run.results.present_share(),
        run.results.evictions, run.results.imbalance);
}

std::string to_text(const sim::CacheRun& run) {
    const std::string size =
        run.options.blocks == 0 ? "without end" : std::to_string(run.options.blocks);
    return fmt::format("{:<10} {:>12} {:>5} {:>8.2f} % {:>8.2f} % {:>8.2f} % {:>10} {:>9.3f}\n",
                       to_string(run.options.policy), size, run.options.nodes,
                       100.0 * run.results.usable_share(), 100.0 * run.results.usable_block_share(),
                       100.0 * run.results.present_share(), run.results.evictions,
                       run.results.imbalance);
}

std::vector<sim::SharedCacheOptions> all_runs(const Options& options) {
    std::vector<sim::SharedCacheOptions> runs;
    for (const std::string& policy : options.policies)
        for (const std::uint32_t nodes : options.nodes)
            for (const std::uint32_t blocks : options.blocks)
                runs.push_back({.policy = *sim::parse_cache_policy(policy),
                                .blocks = blocks,
                                .nodes = nodes,
                                .attention_tokens = options.attention});
    return runs;
}

int run(const Options& options) {
    const auto work = read_work(options);
    if (!work) return fail(is_unreadable(work.error()) ? kCannotStart : kWrongUse, work.error());
    if (!options.json)
        print(
            "policy           blocks nodes     usable  of blocks    present  evictions "
            "imbalance\n");
    std::vector<sim::CacheRun> runs;
    for (const sim::SharedCacheOptions& each : all_runs(options)) {
        runs.push_back({.options = each, .results = sim::replay_cache(*work, each)});
        print(options.json ? to_json(options, runs.back()) : to_text(runs.back()));
    }
    if (options.plot.empty()) return kDone;
    const std::string name = options.trace.substr(options.trace.rfind('/') + 1);
    const auto written =
        write_text_file(options.plot, cache_svg("Prompt tokens found in the cache, " + name, runs));
    return written ? kDone : fail(kFailed, written.error());
}

}  // namespace

Run define_sim_cache(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--trace", options->trace, "Requests of a trace in Mooncake's format")
        ->type_name("FILE")
        ->required();
    command
        .add_option(
            "--policy", options->policies,
            "What goes when room is needed: worth (what Sluice does), attention, lru, s3fifo")
        ->delimiter(',')
        ->check(CLI::IsMember({"worth", "attention", "lru", "s3fifo"}))
        ->type_name("POLICY,...")
        ->capture_default_str();
    command
        .add_option("--blocks", options->blocks,
                    "Of 512 tokens, in all nodes together; 0: without end")
        ->delimiter(',')
        ->check(CLI::Range(std::size_t{0}, limits::kTraceTokens))
        ->type_name("N,...")
        ->capture_default_str();
    command.add_option("--nodes", options->nodes, "Nodes that share the blocks by extents")
        ->delimiter(',')
        ->check(CLI::Range(std::size_t{1}, limits::kKvStores))
        ->type_name("N,...")
        ->capture_default_str();
    command
        .add_option("--attention", options->attention,
                    "For the policy attention: the position at which a token's attention costs as\n"
                    "much as the rest of it")
        ->type_name("TOKENS")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_option("--plot", options->plot, "Write a picture of the shares over the sizes")
        ->type_name("FILE");
    command.add_flag("--json", options->json, "Print a JSON object a line, one for each run");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
