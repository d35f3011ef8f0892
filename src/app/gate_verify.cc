#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "app/command.h"
#include "app/gate_ask.h"
#include "app/gate_result.h"
#include "base/limits.h"
#include "base/private_file.h"

namespace sluice::app {
namespace {

struct Options {
    AskOptions ask;
    std::string baseline;
    std::vector<std::size_t> batches = {1, 4, 16};
    std::vector<std::size_t> long_words = {700, 2'500};
    bool no_interruption = false;
    double min_equal = 1.0;
    bool json = false;
};

/// Without a stored baseline these are asked: greedy and sampled, short and running on.
constexpr std::string_view kPrompts = R"(
{"messages":[{"role":"user","content":"What is the capital of France?"}],"sampling_params":{"max_new_tokens":32,"temperature":0}}
{"messages":[{"role":"user","content":"Tell me a short story about a river."}],"sampling_params":{"max_new_tokens":64,"temperature":0}}
{"messages":[{"role":"user","content":"Tell me a short story about a river."}],"sampling_params":{"max_new_tokens":64,"temperature":1}}
{"messages":[{"role":"user","content":"Name three colours."}],"sampling_params":{"max_new_tokens":24,"temperature":0.7,"top_p":0.9}}
{"messages":[{"role":"system","content":"Answer in one word."},{"role":"user","content":"Is water wet?"}],"sampling_params":{"max_new_tokens":8,"temperature":1}}
{"messages":[{"role":"user","content":"Count from one to ten."}],"sampling_params":{"max_new_tokens":48,"temperature":0}}
{"messages":[{"role":"user","content":"What is a word for very small?"},{"role":"assistant","content":"Tiny."},{"role":"user","content":"And another?"}],"sampling_params":{"max_new_tokens":16,"temperature":1}}
{"messages":[{"role":"user","content":"Write one sentence about the sea."}],"sampling_params":{"max_new_tokens":40,"temperature":0.3}}
)";

/// The stored answers, or what the pool says to each prompt alone.
Result<gates::Baseline> baseline_of(const Options& options, Asked& asked) {
    if (!options.baseline.empty()) {
        const auto text = read_small_file(options.baseline, limits::kGateFileBytes);
        if (!text) return std::unexpected(text.error());
        return gates::parse_baseline(*text, options.baseline);
    }
    auto prompts = gates::parse_prompts(kPrompts, "built-in prompts");
    if (!prompts) return std::unexpected(prompts.error());
    auto outputs = asked.verifier().ask(*prompts, 1, "baseline");
    if (!outputs) return std::unexpected(outputs.error());
    auto rows = gates::join(std::move(*prompts), std::move(*outputs));
    if (!rows) return std::unexpected(rows.error());
    return gates::Baseline{.name = "alone",
                           .created = utc_now(),
                           .model = asked.model(),
                           .versions = "{}",
                           .rows = std::move(*rows)};
}

int run(const Options& options) {
    auto asked = Asked::open(options.ask, {.batches = options.batches,
                                           .long_words = options.long_words,
                                           .interruption = !options.no_interruption,
                                           .min_equal = options.min_equal,
                                           .headers = {}});
    if (!asked) {
        return fail(asked.error().code() == ErrorCode::kInvalid ? kWrongUse : kCannotStart,
                    asked.error());
    }
    const auto baseline = baseline_of(options, **asked);
    if (!baseline) return fail(kFailed, baseline.error());
    return print_report((*asked)->verifier().verify(*baseline), options.json);
}

}  // namespace

Run define_gate_verify(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    add_ask_options(verb, options->ask);
    verb.add_option("--baseline", options->baseline,
                    "What `gate baseline save` wrote; else what the pool answers to built-in\n"
                    "prompts one at a time")
        ->type_name("FILE");
    verb.add_option("--batch", options->batches, "Requests at a time, as in 1,4,16")
        ->delimiter(',')
        ->check(CLI::Range(1, 1'024))
        ->type_name("N,...")
        ->default_str("1,4,16");
    verb.add_option("--long", options->long_words, "Words of the long prompts; 0 for none")
        ->delimiter(',')
        ->check(CLI::Range(0, 1'000'000))
        ->type_name("N,...")
        ->default_str("700,2500");
    verb.add_flag("--no-interruption", options->no_interruption,
                  "Do not cut answers off in the middle");
    verb.add_option("--min-equal", options->min_equal, "Share of equal answers that passes a round")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    verb.add_flag("--json", options->json, "Print one JSON object");
    return [options] {
        std::erase(options->long_words, 0U);
        return run(*options);
    };
}

}  // namespace sluice::app
