#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "app/command.h"
#include "app/model_files.h"
#include "app/run_batch.h"
#include "app/run_prompt.h"
#include "base/limits.h"
#include "gateway/model_vocabulary.h"

namespace sluice::app {
namespace {

struct Options {
    std::string model{gateway::kBuiltInModel};
    std::string prompt;
    std::string prompt_file;
    std::string input;
    std::string output;
    std::optional<std::uint64_t> seed;
    std::size_t batch = limits::kEngineRunning;
    std::string threads = "auto";
    std::string speculation = "auto";
    bool raw = false;
    bool think = false;
    bool json = false;
    RunDefaults defaults;
};

int start(Options options) {
    const auto threads = parse_threads(options.threads);
    if (!threads) return fail(kWrongUse, threads.error());
    const auto speculation = parse_speculation(options.speculation);
    if (!speculation) return fail(kWrongUse, speculation.error());
    const bool is_batch = !options.input.empty();
    if (is_batch == options.output.empty()) {
        return fail(kWrongUse, "--input and --output belong together; see `sluice run --help`");
    }
    if (is_batch && options.json && options.output == "-") {
        return fail(kWrongUse, "--json prints a summary where --output - prints the rows");
    }
    if (!options.prompt_file.empty()) {
        auto text = read_input(options.prompt_file, limits::kBodyBytes);
        if (!text) return fail(kCannotStart, text.error());
        options.prompt = *std::move(text);
    }
    options.defaults.form = options.raw ? PromptForm::kRaw : PromptForm::kChat;
    if (options.think) options.defaults.thinking = protocol::Thinking::kOn;

    auto model = load_run_model({.model = options.model,
                                 .threads = *threads,
                                 .speculation = *speculation,
                                 .batch = is_batch ? options.batch : 1});
    if (!model) return fail(kCannotStart, model.error());
    if (is_batch) {
        return run_batch({.input = options.input,
                          .output = options.output,
                          .seed = options.seed.value_or(0),
                          .batch = options.batch,
                          .json = options.json},
                         *model, options.defaults);
    }
    return run_prompt({.prompt = options.prompt,
                       .seed = options.seed ? *options.seed : draw_seed(),
                       .json = options.json},
                      *model, options.defaults);
}

void add_sampling(CLI::App& command, Options& options) {
    CLI::Option_group& group = *command.add_option_group("Sampling");
    group
        .add_option("--max-tokens", options.defaults.max_tokens,
                    fmt::format("Most tokens of an answer; without it {}", kDefaultTokens))
        ->check(CLI::Range(std::size_t{1}, limits::kMaxTokens));
    group.add_option("--temperature", options.defaults.temperature, "0 is greedy")
        ->check(CLI::Range(0.0, 2.0))
        ->default_str("1");
    group.add_option("--top-p", options.defaults.top_p, "1 is off")
        ->check(CLI::Range(1e-6, 1.0))
        ->default_str("1");
    group.add_option("--top-k", options.defaults.top_k, "0 is off")
        ->check(CLI::NonNegativeNumber)
        ->default_str("0");
    group.add_option("--min-p", options.defaults.min_p, "0 is off")
        ->check(CLI::Range(0.0, 1.0))
        ->default_str("0");
    group.add_option("--seed", options.seed,
                     "Without it one is drawn for a prompt; for a file it is 0, and each row has "
                     "its own, made of this and the row's id");
}

}  // namespace

Run define_run(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--model", options->model, "A GGUF file, or `krill`, the built-in model")
        ->capture_default_str();

    CLI::Option_group& source = *command.add_option_group("Prompt");
    source.add_option("--prompt", options->prompt, "Answer this");
    source.add_option("--prompt-file", options->prompt_file,
                      "Answer what this file says; - is standard input");
    source.add_option("--input", options->input,
                      "Answer each row of this JSONL file: id?, prompt or messages or input_ids, "
                      "sampling_params?; - is standard input");
    source.require_option(1);
    command.add_option("--output", options->output,
                       "JSONL file for the answers to --input. Rows whose id is in it already are "
                       "skipped, so a stopped run goes on; - is standard output");
    command.add_option("--system", options->defaults.system, "System text before each prompt");
    command.add_flag("--think", options->think, "Let the model think first");
    command.add_flag("--raw", options->raw,
                     "Prompts are templates: as written, with control tokens recognised and no "
                     "BOS added");
    add_sampling(command, *options);
    command.add_option("--batch", options->batch, "Rows computed together; changes no token")
        ->check(CLI::Range(std::size_t{1}, limits::kBatchInFlight))
        ->capture_default_str();
    command
        .add_option("--speculation", options->speculation,
                    "Guess tokens: auto, off, lookup in the text so far, or mtp, the model's own "
                    "head; changes no token")
        ->type_name("KIND")
        ->capture_default_str();
    command.add_option("--threads", options->threads, "A number, or auto; changes no token")
        ->capture_default_str();
    command.add_flag("--json", options->json,
                     "Print the answer as a row, or a summary of --input, as one JSON object");
    return [options] { return start(*options); };
}

}  // namespace sluice::app
