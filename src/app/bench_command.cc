#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "app/bench_conversation.h"
#include "app/bench_engine.h"
#include "app/bench_fit.h"
#include "app/bench_load.h"
#include "app/command.h"
#include "gateway/model_vocabulary.h"
#include "tensor/target.h"

namespace sluice::app {
namespace {

struct Options {
    std::string model = std::string(gateway::kBuiltInModel);
    BenchEngineOptions bench;
    bool json = false;
    BenchLoadOptions load;
    bool fits = false;
    BenchFitOptions fit;
};

void print_row(const BenchEngineRow& row, bool json) {
    if (json) {
        print(fmt::format(
            R"({{"test":"{}","threads":{},"batch":{},"tokens":{},"tokens_per_s":{:.1f},"slowest":{:.1f},"fastest":{:.1f},"multiply_add_share":{:.3f},"bandwidth_share":{:.3f},"speculation":"{}","drafted":{},"accepted":{}}})"
            "\n",
            row.test, row.threads, row.batch, row.tokens, row.tokens_per_s, row.slowest,
            row.fastest, row.multiply_add_share, row.bandwidth_share, row.speculation, row.drafted,
            row.accepted));
    } else {
        print(fmt::format(
            "{:<10}{:>8}{:>8}{:>12.1f}{:>12.1f}{:>12.1f}{:>13.0f} %{:>10.0f} %{:>13}{:>10}{:>10}\n",
            row.test, row.threads, row.batch, row.tokens_per_s, row.slowest, row.fastest,
            100.0 * row.multiply_add_share, 100.0 * row.bandwidth_share, row.speculation,
            row.drafted, row.accepted));
    }
    std::fflush(stdout);
}

int run(const Options& options) {
    const auto target = tensor::select_target();
    if (!target) return fail(kCannotStart, target.error());
    const auto path = gateway::find_model(options.model);
    if (!path) return fail(kCannotStart, path.error());
    const auto model = engine::Model::load(*path);
    if (!model) return fail(kCannotStart, model.error());
    if (!options.json) {
        print(
            fmt::format("{} on {}, tokens/s: median, least and most of {}; shares of what this "
                        "machine was measured to do at most\n",
                        path->filename().string(), to_string(*target), options.bench.repeats));
        print(fmt::format("{:<10}{:>8}{:>8}{:>12}{:>12}{:>12}{:>15}{:>12}{:>13}{:>10}{:>10}\n",
                          "test", "threads", "batch", "median", "least", "most", "multiply-adds",
                          "bandwidth", "speculation", "drafted", "accepted"));
    }
    const auto on_row = [&](const BenchEngineRow& row) { print_row(row, options.json); };
    const auto done = bench_engine(*model, options.bench, on_row);
    if (!done) return fail(kWrongUse, done.error());
    if (options.bench.speculation.empty()) return kDone;
    const auto questions = bench_questions(*path, **model);
    if (!questions) return fail(kCannotStart, questions.error());
    const auto spoken = bench_conversation(*model, *questions, options.bench, on_row);
    if (!spoken) return fail(kWrongUse, spoken.error());
    return kDone;
}

void define_fit(CLI::App& command, Options& options) {
    options.fit.model = options.model;  // The built-in one.
    CLI::Option* fit = command.add_flag(
        "--fit", options.fits, "Measure what `sim --engine` needs to know of the native engine");
    command.add_option("--model", options.fit.model, "GGUF file, or krill")
        ->type_name("FILE")
        ->needs(fit)
        ->capture_default_str();
    command.add_option("--threads", options.fit.threads, "Threads of the engine")
        ->type_name("N")
        ->check(CLI::Range(1, 256))
        ->needs(fit)
        ->capture_default_str();
    command
        .add_option("--neighbours", options.fit.neighbours,
                    "So many engines share the machine: measure how they slow it down")
        ->check(CLI::Range(0, 256))
        ->type_name("N")
        ->needs(fit);
    command
        .add_option("--url", options.fit.api.url,
                    "A service with such an engine and nothing to do: measure its own part, too")
        ->type_name("URL")
        ->needs(fit);
    command.add_option("--output", options.fit.output, "Write the parameters there, not to stdout")
        ->type_name("FILE")
        ->needs(fit);
}

}  // namespace

Run define_bench(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.require_subcommand(0, 1);
    define_fit(command, *options);
    CLI::App* engine = command.add_subcommand(
        "engine", "Speed of the native engine: prompts, and decoding at each batch size");
    engine->add_option("--model", options->model, "GGUF file, or krill")
        ->type_name("FILE")
        ->capture_default_str();
    engine->add_option("--threads", options->bench.threads, "Numbers of threads, as in 1,2")
        ->delimiter(',')
        ->check(CLI::Range(1, 256))
        ->type_name("N,...");
    engine->add_option("--prompt", options->bench.prompt, "Tokens of the prompt; 0 skips the test")
        ->check(CLI::Range(0, 1'000'000))
        ->type_name("N")
        ->capture_default_str();
    engine
        ->add_option("--decode", options->bench.decode,
                     "Tokens that a sequence generates; 0 skips the test")
        ->check(CLI::Range(0, 1'000'000))
        ->type_name("N")
        ->capture_default_str();
    engine->add_option("--batch", options->bench.batch, "Sequences that generate together")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->type_name("N,...");
    engine
        ->add_option("--speculation", options->bench.speculation,
                     "Also a conversation that asks its first question again, decoded with each "
                     "KIND: off, lookup, mtp, auto")
        ->delimiter(',')
        ->check(CLI::IsMember({"off", "lookup", "mtp", "auto"}))
        ->type_name("KIND,...");
    engine->add_option("--repeats", options->bench.repeats, "Runs whose median counts")
        ->check(CLI::Range(1, 1000))
        ->type_name("N")
        ->capture_default_str();
    engine->add_flag("--json", options->json, "Print a JSON object a line");
    const CLI::App* load = define_bench_load(command, options->load);
    return [options, &command, load, engine]() -> int {
        if (load->parsed()) return bench_load(options->load);
        if (engine->parsed()) return run(*options);
        if (options->fits) return bench_fit(options->fit);
        print(command.help());
        return kWrongUse;
    };
}

}  // namespace sluice::app
