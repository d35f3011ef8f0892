#include "app/sim_options.h"

#include "base/limits.h"

namespace sluice::app {
namespace {

void add_load_options(CLI::App& command, SimOptions& options) {
    CLI::Option* trace =
        command.add_option("--trace", options.trace, "Requests of a trace: Mooncake's or Azure's")
            ->type_name("FILE");
    command
        .add_option("--mix", options.mix,
                    "Requests of given shapes: chat, code, or INPUT/OUTPUT[*WEIGHT],...")
        ->type_name("MIX")
        ->excludes(trace);
    command
        .add_option("--rate", options.rate,
                    "So many requests a second in the mean; else a trace keeps its times, and\n"
                    "a mix has one a second")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    command.add_option("--speed", options.speed, "Requests come so many times as fast")
        ->type_name("X")
        ->check(CLI::Range(1e-6, 1e6))
        ->capture_default_str();
    command
        .add_option("--requests", options.requests, "How many; else all of a trace, 1000 of a mix")
        ->type_name("N")
        ->check(CLI::Range(std::size_t{1}, limits::kTraceRequests));
    command.add_option("--slice", options.slice, "Of a trace, so many requests from that one on")
        ->type_name("FIRST:COUNT");
    command.add_option("--input-max", options.input_max, "Cut longer prompts to that many tokens")
        ->type_name("N");
    command
        .add_option("--output-max", options.output_max, "Cut longer answers to that many tokens")
        ->type_name("N");
    command
        .add_option("--image-share", options.image_share,
                    "Share of the requests that have an image to encode")
        ->type_name("SHARE")
        ->check(CLI::Range(0.0, 1.0));
    command.add_option("--image-tokens", options.image_tokens, "Of an image")
        ->type_name("N")
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
}

void add_worker_options(CLI::App& command, SimOptions& options) {
    const auto count = CLI::Range(std::size_t{1}, limits::kSimWorkers);
    command.add_option("--workers", options.workers, "Engines that do everything")
        ->type_name("N")
        ->check(count)
        ->capture_default_str();
    command.add_option("--prefill", options.prefill, "Instead, engines that compute prompts")
        ->type_name("N")
        ->check(count);
    command.add_option("--decode", options.decode, "And engines that answer from there on")
        ->type_name("N")
        ->check(count);
    command.add_option("--encode", options.encode, "Engines for images alone")
        ->type_name("N")
        ->check(count);
    command
        .add_option("--per-machine", options.per_machine,
                    "So many of them share a machine, and fail together")
        ->type_name("N")
        ->check(count)
        ->capture_default_str();
    command
        .add_option("--policy", options.policies,
                    "Who gets a request: default, round_robin, least_loaded, overlap; of several,\n"
                    "a run each")
        ->delimiter(',')
        ->check(CLI::IsMember({"default", "round_robin", "least_loaded", "overlap"}))
        ->type_name("POLICY,...")
        ->capture_default_str();
    command.add_flag("--no-tiers", options.no_tiers,
                     "Long prompts may go everywhere, before short ones, too");
    command
        .add_option("--engine", options.engine,
                    "Engine's parameters, as `sluice bench --fit` writes them; else an accelerator")
        ->type_name("FILE");
    command
        .add_option("--blocks", options.blocks, "KV that a worker holds, in blocks of 512 tokens")
        ->type_name("N")
        ->check(CLI::Range(std::size_t{1}, limits::kTraceTokens));
    command
        .add_option("--prefill-rate", options.prefill_rate, "Prompt tokens a second of a worker")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    command
        .add_option(
            "--attention", options.attention,
            "Position at which a prompt token's attention costs as much as the rest of it;\n"
            "0: never")
        ->type_name("TOKENS")
        ->check(CLI::NonNegativeNumber);
    command
        .add_option("--order", options.order,
                    "Of prompts in an engine: by arrival, as vLLM and SGLang do, or the shortest\n"
                    "first, as the native one does")
        ->check(CLI::IsMember({"arrival", "shortest"}))
        ->type_name("ORDER");
}

void add_cache_options(CLI::App& command, SimOptions& options) {
    command
        .add_option("--kv-dram", options.kv_dram,
                    "Memory of each worker's machine that keeps blocks beside its pool")
        ->type_name("SIZE");
    command.add_option("--kv-nodes", options.kv_nodes, "Cache nodes that all workers share")
        ->type_name("N")
        ->check(CLI::Range(std::size_t{0}, limits::kKvStores))
        ->capture_default_str();
    command
        .add_option("--kv-node-dram", options.kv_node_dram,
                    "Memory of each of them; else it has no end")
        ->type_name("SIZE");
    command
        .add_option("--kv-policy", options.kv_policy,
                    "What goes when room is needed there: worth (what Sluice does), attention,\n"
                    "lru, s3fifo")
        ->check(CLI::IsMember({"worth", "attention", "lru", "s3fifo"}))
        ->type_name("POLICY")
        ->capture_default_str();
    const auto time = CLI::Range(0.0, 1e6);
    command
        .add_option("--kv-dram-load", options.kv_dram_load,
                    "Microseconds to load a token from the machine's memory; else the engine's")
        ->type_name("US")
        ->check(time);
    command
        .add_option("--kv-node-load", options.kv_node_load,
                    "The same from a node; else the engine's")
        ->type_name("US")
        ->check(time);
}

}  // namespace

void add_sim_options(CLI::App& command, SimOptions& options) {
    add_load_options(command, options);
    add_worker_options(command, options);
    add_cache_options(command, options);
    command.add_option("--faults", options.faults, "What goes wrong and when: docs/simulator.md")
        ->type_name("FILE");
    command.add_option("--deadline", options.deadline, "Of each request")
        ->type_name("DURATION")
        ->capture_default_str();
    command.add_option("--slo-ttft", options.slo_ttft, "Goodput counts answers that start in time")
        ->type_name("DURATION")
        ->capture_default_str();
    command
        .add_option("--slo-tbt", options.slo_tbt,
                    "And whose 99th percentile between tokens is within")
        ->type_name("DURATION")
        ->capture_default_str();
    command.add_option("--seed", options.seed, "Of all that is drawn")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--out", options.out, "Write report.txt, report.jsonl, index.html and plots")
        ->type_name("FOLDER");
    command.add_flag("--json", options.json, "Print a JSON object a line, one for each run");
}

}  // namespace sluice::app
