#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "app/command.h"
#include "app/gate_ask.h"
#include "app/gate_result.h"
#include "app/text_file.h"
#include "base/limits.h"
#include "base/private_file.h"
#include "gates/baseline.h"

namespace sluice::app {
namespace {

struct Options {
    AskOptions ask;
    std::string prompts;
    std::string from;  ///< Outputs of an offline run, instead of asking.
    std::string output;
    std::string name = "baseline";
    std::string versions;
    std::string baseline;
    double min_equal = 1.0;
    bool json = false;
};

Result<std::vector<gates::BaselineOutput>> outputs_of(
    const Options& options, const std::vector<gates::BaselinePrompt>& prompts, std::string& model) {
    if (!options.from.empty()) {
        const auto text = read_small_file(options.from, limits::kGateFileBytes);
        if (!text) return std::unexpected(text.error());
        model = options.ask.api.model;
        return gates::parse_outputs(*text, options.from);
    }
    auto asked = Asked::open(options.ask);
    if (!asked) return std::unexpected(asked.error());
    model = (*asked)->model();
    return (*asked)->verifier().ask(prompts, 1, "baseline");
}

int save(const Options& options) {
    const auto text = read_small_file(options.prompts, limits::kGateFileBytes);
    if (!text) return fail(kCannotStart, text.error());
    const auto prompts = gates::parse_prompts(*text, options.prompts);
    if (!prompts) return fail(kWrongUse, prompts.error());
    gates::Baseline baseline{
        .name = options.name, .created = utc_now(), .model = {}, .versions = "{}", .rows = {}};
    if (!options.versions.empty()) {
        const auto file = read_small_file(options.versions, limits::kGateFileBytes);
        if (!file) return fail(kCannotStart, file.error());
        auto versions = gates::parse_versions(*file);
        if (!versions) return fail(kWrongUse, versions.error().within(options.versions));
        baseline.versions = std::move(*versions);
    }
    auto outputs = outputs_of(options, *prompts, baseline.model);
    if (!outputs) return fail(kFailed, outputs.error());
    auto rows = gates::join(*prompts, std::move(*outputs));
    if (!rows) return fail(kFailed, rows.error());
    baseline.rows = std::move(*rows);
    if (const auto done = write_text_file(options.output, gates::to_json_lines(baseline)); !done)
        return fail(kFailed, done.error());
    print(options.json
              ? fmt::format("{{\"rows\":{}}}\n", baseline.rows.size())
              : fmt::format("{} answers saved in {}\n", baseline.rows.size(), options.output));
    return kDone;
}

int compare(const Options& options) {
    const auto text = read_small_file(options.baseline, limits::kGateFileBytes);
    if (!text) return fail(kCannotStart, text.error());
    const auto baseline = gates::parse_baseline(*text, options.baseline);
    if (!baseline) return fail(kWrongUse, baseline.error());
    std::vector<gates::BaselinePrompt> prompts;
    for (const gates::BaselineRow& row : baseline->rows) prompts.push_back(row.prompt);
    std::string model;
    const auto outputs = outputs_of(options, prompts, model);
    if (!outputs) return fail(kFailed, outputs.error());
    return print_report(
        {.gate = "baseline",
         .items = gates::compare(*baseline, *outputs,
                                 options.from.empty() ? options.ask.api.url : options.from,
                                 options.min_equal)},
        options.json);
}

void add_source(CLI::App& verb, Options& options) {
    add_ask_options(verb, options.ask);
    verb.add_option(
            "--from", options.from,
            "Answers of an offline run (JSON lines, as `sluice run --output` writes them),\n"
            "instead of asking a server")
        ->type_name("FILE");
    verb.add_flag("--json", options.json, "Print one JSON object");
}

}  // namespace

Run define_gate_baseline(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.require_subcommand(1);
    CLI::App* store = command.add_subcommand(
        "save", "Ask each prompt once, one at a time, and store the answers");
    store
        ->add_option("--prompts", options->prompts,
                     "JSON lines, as `sluice run --input` takes them")
        ->type_name("FILE")
        ->required();
    store->add_option("--output", options->output, "The baseline, as JSON lines")
        ->type_name("FILE")
        ->required();
    store->add_option("--name", options->name, "What it will be called")
        ->type_name("NAME")
        ->capture_default_str();
    store
        ->add_option("--versions", options->versions,
                     "JSON file with the versions that made the answers, such as the manifest of\n"
                     "`gate compat`")
        ->type_name("FILE");
    add_source(*store, *options);
    CLI::App* check = command.add_subcommand("compare", "Lay other answers beside a baseline");
    check->add_option("baseline", options->baseline, "What `gate baseline save` wrote")
        ->type_name("FILE")
        ->required();
    check->add_option("--min-equal", options->min_equal, "Share of equal answers that passes")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    add_source(*check, *options);
    return [options, check] { return check->parsed() ? compare(*options) : save(*options); };
}

}  // namespace sluice::app
