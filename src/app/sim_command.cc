#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/text_file.h"
#include "base/limits.h"
#include "base/units.h"
#include "sim/sim_page.h"
#include "sim/simulation.h"

namespace sluice::app {
namespace {

constexpr std::size_t kMixRequests = 1'000;
constexpr double kMixRate = 1.0;

struct Options {
    std::string trace;
    std::string mix;
    std::optional<double> rate;
    double speed = 1.0;
    std::size_t requests = 0;
    std::string slice;
    std::uint32_t input_max = 0;
    std::uint32_t output_max = 0;
    double image_share = 0.0;
    std::uint32_t image_tokens = 1'024;

    std::uint32_t workers = 8;
    std::uint32_t encode = 0;
    std::uint32_t prefill = 0;
    std::uint32_t decode = 0;
    std::uint32_t per_machine = 1;
    std::vector<std::string> policies{"default"};
    bool no_tiers = false;

    std::string engine;
    std::optional<std::uint32_t> blocks;
    std::optional<double> prefill_rate;
    std::optional<double> attention;
    std::string order;

    std::string faults;
    std::string deadline = "10m";
    std::string slo_ttft = "10s";
    std::string slo_tbt = "200ms";
    std::uint64_t seed = 0;
    std::string out;
    bool json = false;
};

// ---- From options to a run ------------------------------------------------------------------------

Result<std::vector<trace::PlannedRequest>> make_plan(const Options& options) {
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

Result<sim::EngineParameters> make_engine(const Options& options) {
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
    if (options.order == "shortest") engine.order = sim::PrefillOrder::kShortest;
    if (options.order == "arrival") engine.order = sim::PrefillOrder::kArrival;
    return engine;
}

Result<std::chrono::milliseconds> duration(const std::string& text, const std::string& flag) {
    auto value = parse_duration(text);
    if (!value) return std::unexpected(value.error().within(flag));
    return value;
}

Result<sim::SimulationOptions> make_simulation(const Options& options) {
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
    const sim::FleetOptions& fleet = simulation.gateway.fleet;
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

Result<Prepared> prepare(const Options& options) {
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

sim::RunResult simulate(const Options& options, Prepared& prepared, routing::Policy policy) {
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

int run(const Options& options) {
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

// ---- Options --------------------------------------------------------------------------------------

void add_load_options(CLI::App& command, Options& options) {
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

void add_worker_options(CLI::App& command, Options& options) {
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

}  // namespace

Run define_sim(CLI::App& command) {
    auto options = std::make_shared<Options>();
    add_load_options(command, *options);
    add_worker_options(command, *options);
    command.add_option("--faults", options->faults, "What goes wrong and when: docs/simulator.md")
        ->type_name("FILE");
    command.add_option("--deadline", options->deadline, "Of each request")
        ->type_name("DURATION")
        ->capture_default_str();
    command
        .add_option("--slo-ttft", options->slo_ttft, "Goodput counts answers that start in time")
        ->type_name("DURATION")
        ->capture_default_str();
    command
        .add_option("--slo-tbt", options->slo_tbt,
                    "And whose 99th percentile between tokens is within")
        ->type_name("DURATION")
        ->capture_default_str();
    command.add_option("--seed", options->seed, "Of all that is drawn")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--out", options->out, "Write report.txt, report.jsonl, index.html and plots")
        ->type_name("FOLDER");
    command.add_flag("--json", options->json, "Print a JSON object a line, one for each run");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
