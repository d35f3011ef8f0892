#include "app/bench_load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>

#include "app/load_report.h"
#include "app/text_file.h"
#include "base/units.h"
#include "net/event_loop.h"
#include "record/card.h"
#include "trace/load_generator.h"
#include "trace/trace.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMixRequests = 200;
/// Long enough for the words to outweigh the chat template.
constexpr std::uint32_t kProbeWords = 200;
constexpr std::chrono::seconds kProgressEvery{1};

Result<std::optional<std::chrono::milliseconds>> objective(const std::string& text,
                                                           const std::string& flag) {
    if (text.empty()) return std::nullopt;
    const auto duration = parse_duration(text);
    if (!duration) return std::unexpected(duration.error().within(flag));
    return *duration;
}

/// Learns from one short request how many words make a token.
Result<trace::PromptMaker> calibrate(net::EventLoop& loop, net::HttpClient& client,
                                     const trace::LoadTarget& target, std::uint64_t seed) {
    std::optional<trace::CallResult> result;
    const auto call = trace::StreamCall::start(
        client, target,
        request_body(target, {.input_tokens = kProbeWords, .output_tokens = 1},
                     trace::PromptMaker::words(~seed, kProbeWords)),
        {}, Clock::now(), [&](trace::CallResult ended) { result = std::move(ended); });
    while (!result) loop.run_for(std::chrono::milliseconds(20));
    if (result->outcome != trace::CallOutcome::kOk) {
        return std::unexpected(Error(ErrorCode::kUnavailable,
                                     "the first request failed: " + result->error, target.url));
    }
    if (result->prompt_tokens == 0) return trace::PromptMaker();
    return trace::PromptMaker::calibrated(kProbeWords, result->prompt_tokens);
}

Result<std::vector<trace::PlannedRequest>> make_plan(const BenchLoadOptions& options) {
    trace::PlanOptions plan{
        .requests = options.requests, .rate = options.rate, .seed = options.seed};
    std::vector<trace::PlannedRequest> requests;
    if (options.trace.empty()) {
        const auto shapes = trace::parse_mix(options.mix);
        if (!shapes) return std::unexpected(shapes.error());
        if (plan.requests == 0) plan.requests = kMixRequests;
        requests = plan_load(*shapes, plan);
    } else {
        const auto recorded = trace::read_trace(options.trace);
        if (!recorded) return std::unexpected(recorded.error());
        if (plan.requests == 0) plan.requests = recorded->requests.size();
        requests = plan_load(*recorded, plan);
    }
    for (auto& request : requests) {
        if (options.input_max > 0)
            request.input_tokens = std::min(request.input_tokens, options.input_max);
        if (options.output_max > 0)
            request.output_tokens = std::min(request.output_tokens, options.output_max);
    }
    return requests;
}

/// A line every second on stderr: rewritten on a terminal, so that a log holds the last ones only.
class Progress {
public:
    Progress(net::EventLoop& loop, const trace::LoadGenerator& generator, const LoadReport& report)
        : loop_(loop), generator_(generator), report_(report) {
        tick();
    }
    ~Progress() {
        if (terminal_) std::fputs("\r\033[K", stderr);
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

private:
    void tick() {
        const trace::LoadProgress now = generator_.progress();
        std::fputs(fmt::format("{}{} of {} sent, {} ended, {} failed{}", terminal_ ? "\r" : "",
                               now.sent, now.planned, now.ended,
                               report_.ended() - report_.succeeded(), terminal_ ? "\033[K" : "\n")
                       .c_str(),
                   stderr);
        timer_ = loop_.call_after(kProgressEvery, [this] { tick(); });
    }

    net::EventLoop& loop_;
    const trace::LoadGenerator& generator_;
    const LoadReport& report_;
    bool terminal_ = isatty(STDERR_FILENO) == 1;
    net::Timer timer_;
};

struct Prepared {
    trace::LoadTarget target;
    LoadObjectives objectives;
    std::vector<trace::PlannedRequest> plan;
};

Result<Prepared> prepare(const BenchLoadOptions& options) {
    Prepared prepared;
    auto target = api_target(options.api);
    if (!target) return std::unexpected(target.error());
    const auto ttft = objective(options.slo_ttft, "--slo-ttft");
    if (!ttft) return std::unexpected(ttft.error());
    const auto tbt = objective(options.slo_tbt, "--slo-tbt");
    if (!tbt) return std::unexpected(tbt.error());
    auto plan = make_plan(options);
    if (!plan) return std::unexpected(plan.error());
    prepared.target = std::move(*target);
    prepared.target.ignore_eos = options.ignore_eos;
    prepared.objectives = {.ttft = *ttft, .tbt = *tbt};
    prepared.plan = std::move(*plan);
    return prepared;
}

/// Runs the plan to its end or to the first interrupt; returns its time, and whether it was cut.
struct Course {
    std::chrono::duration<double> elapsed{};
    bool interrupted = false;
};
Course carry_out(net::EventLoop& loop, net::HttpClient& client, const BenchLoadOptions& options,
                 Prepared prepared, const trace::PromptMaker& prompts, LoadReport& report,
                 std::ofstream& rows) {
    Course run;
    const std::string name = prepared.target.url;
    trace::LoadGenerator generator(
        loop, client, std::move(prepared.target), prompts, std::move(prepared.plan),
        {.concurrency = options.concurrency},
        {.on_result =
             [&](const trace::PlannedRequest& request, const trace::CallResult& result) {
                 const auto row = load_row(name, report.ended(), request, result);
                 report.add(row, result);
                 if (rows.is_open()) rows << to_json(row) << '\n';
             },
         .on_done = [&] { loop.stop(); }});
    loop.on_signal({SIGINT, SIGTERM}, [&](int) {
        if (run.interrupted) loop.stop();  // The second one does not wait for running requests.
        run.interrupted = true;
        generator.stop();
    });
    const Progress progress(loop, generator, report);
    const auto start = Clock::now();
    generator.start();
    loop.run();
    run.elapsed = Clock::now() - start;
    return run;
}

}  // namespace

CLI::App* define_bench_load(CLI::App& bench, BenchLoadOptions& options) {
    CLI::App* load = bench.add_subcommand(
        "load", "Load on any OpenAI-compatible address: latencies, goodput, and the card");
    add_api_options(*load, options.api);
    CLI::Option* trace =
        load->add_option("--trace", options.trace, "Requests of a trace: Mooncake's or Azure's")
            ->type_name("FILE");
    load->add_option("--mix", options.mix,
                     "Requests of given shapes: chat, code, or INPUT/OUTPUT[:KIND][*WEIGHT],...\n"
                     "with KIND text, seeded, json_schema or tools")
        ->type_name("MIX")
        ->capture_default_str()
        ->excludes(trace);
    CLI::Option* concurrency = load->add_option("--concurrency", options.concurrency,
                                                "Closed loop: that many requests at a time")
                                   ->type_name("N")
                                   ->check(CLI::Range(1, 10'000));
    load->add_option("--rate", options.rate,
                     "Open loop: that many requests a second in the mean. Without both a trace\n"
                     "keeps its own times, and a mix runs one at a time")
        ->type_name("N")
        ->check(CLI::PositiveNumber)
        ->excludes(concurrency);
    load->add_option("--requests", options.requests, "How many; else 200 of a mix, all of a trace")
        ->type_name("N")
        ->check(CLI::Range(1, 4'194'304));
    load->add_option("--input-max", options.input_max, "Cut longer prompts to that many tokens")
        ->type_name("N");
    load->add_option("--output-max", options.output_max, "Cut longer answers to that many tokens")
        ->type_name("N");
    load->add_option("--seed", options.seed, "Of texts and arrivals")
        ->type_name("N")
        ->capture_default_str();
    load->add_flag("--ignore-eos", options.ignore_eos,
                   "Answers run to their full length (Sluice, vLLM, SGLang, llama.cpp)");
    load->add_option("--slo-ttft", options.slo_ttft, "Goodput counts answers that start in time")
        ->type_name("DURATION");
    load->add_option("--slo-tbt", options.slo_tbt,
                     "Goodput counts answers whose 99th percentile between tokens is within")
        ->type_name("DURATION");
    load->add_option("--output", options.output, "Write a record per request as JSON lines")
        ->type_name("FILE");
    load->add_option("--html", options.html, "Write the card as a page")->type_name("FILE");
    load->add_flag("--json", options.json, "Print one JSON object");
    return load;
}

int bench_load(const BenchLoadOptions& given) {
    BenchLoadOptions options = given;
    if (options.trace.empty() && !options.rate && options.concurrency == 0) options.concurrency = 1;
    auto prepared = prepare(options);
    if (!prepared) {
        return fail(is_unreadable(prepared.error()) ? kCannotStart : kWrongUse, prepared.error());
    }
    std::ofstream rows;
    if (!options.output.empty()) {
        rows.open(options.output);
        if (!rows) return fail(kCannotStart, Error::io("cannot write", errno, options.output));
    }
    net::EventLoop loop;
    net::HttpClient client(
        loop, {.idle_connections_per_host = std::max<std::size_t>(64, options.concurrency)});
    if (const auto chosen = choose_model(loop, client, prepared->target); !chosen)
        return fail(kCannotStart, chosen.error());
    const auto prompts = calibrate(loop, client, prepared->target, options.seed);
    if (!prompts) return fail(kCannotStart, prompts.error());

    LoadReport report(prepared->target.url, prepared->target.model, prepared->objectives);
    const Course run =
        carry_out(loop, client, options, std::move(*prepared), *prompts, report, rows);
    print(options.json ? report.json(run.elapsed) + "\n" : report.text(run.elapsed));
    if (rows.is_open() && !rows.flush())
        return fail(kFailed, Error::io("cannot write", errno, options.output));
    if (!options.html.empty()) {
        if (const auto written = write_text_file(options.html, to_html(report.card())); !written)
            return fail(kFailed, written.error());
    }
    if (run.interrupted) return kInterrupted;
    return report.succeeded() > 0 ? kDone : kFailed;
}

}  // namespace sluice::app
