// `sluice COMMAND ...`: finds the command, has its options parsed, and turns every outcome into an
// exit code and at most a line or two on stderr.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/command.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/version.h"

namespace sluice::app {
namespace {

std::vector<std::string_view> subcommand_names(const CLI::App& app) {
    std::vector<std::string_view> names;
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    return names;
}

std::string full_name(const CLI::App& app) {
    const CLI::App* const parent = app.get_parent();
    return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

/// The subcommand that `argv` names, as deep as its words go. A word that should be a subcommand and
/// is none is put into `stranger`.
const CLI::App& deepest(const CLI::App& root, std::span<char* const> words,
                        std::string_view& stranger) {
    const CLI::App* app = &root;
    for (const std::string_view word : words) {
        const std::vector<std::string_view> names = subcommand_names(*app);
        if (word.starts_with('-') || names.empty()) break;
        if (std::find(names.begin(), names.end(), word) == names.end()) {
            stranger = word;
            break;
        }
        app = app->get_subcommand(std::string(word));
    }
    return *app;
}

/// The first word in `words` that looks like an option of `app` and is none.
std::string_view strange_option(const CLI::App& app, std::span<char* const> words) {
    for (std::string_view word : words) {
        if (word == "--") break;
        word = word.substr(0, word.find('='));
        if (!word.starts_with("--")) continue;
        if (app.get_option_no_throw(std::string(word)) == nullptr) return word;
    }
    return {};
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

int wrong_use(const CLI::App& root, std::span<char* const> words, const CLI::ParseError& error) {
    std::string_view stranger;
    const CLI::App& app = deepest(root, words, stranger);
    const std::string see = fmt::format("; see `{} --help`", full_name(app));
    if (!stranger.empty()) {
        const std::string hint = did_you_mean(stranger, subcommand_names(app));
        return fail(kWrongUse,
                    fmt::format("unknown command '{}'{}", stranger, hint.empty() ? see : hint));
    }
    const std::string_view option = strange_option(app, words);
    if (!option.empty()) {
        const std::vector<std::string> owned = option_names(app);
        const std::vector<std::string_view> names(owned.begin(), owned.end());
        const std::string hint = did_you_mean(option, names);
        return fail(kWrongUse,
                    fmt::format("unknown option '{}'{}", option, hint.empty() ? see : hint));
    }
    return fail(kWrongUse, error.what() + see);
}

int run(int argc, char** argv) {
    CLI::App root("Serves language models: exact, resumable, observable.", "sluice");
    root.set_version_flag("--version", "sluice " + version().version);
    root.require_subcommand(1);

    std::vector<std::pair<const CLI::App*, Run>> runs;
    for (const Command& command : commands()) {
        CLI::App* sub =
            root.add_subcommand(std::string(command.name), std::string(command.summary));
        runs.emplace_back(sub, command.define(*sub));
    }

    // After the subcommands, which would inherit it.
    root.footer(
        "Exit codes: 0 done, 1 failed, 2 wrong use, 3 cannot start, 130 interrupted.\n"
        "SLUICE_LOG=debug|info|warn|error|off[,json] sets what is logged to stderr.");

    const std::span<char* const> words(argv + 1, argv + argc);
    if (words.empty()) {
        std::fputs(root.help().c_str(), stderr);
        return kWrongUse;
    }
    try {
        root.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::string_view ignored;
        const CLI::App& app = deepest(root, words, ignored);
        const CLI::App* const parent = app.get_parent();
        print(app.help(parent == nullptr ? "" : full_name(*parent)));
        return kDone;
    } catch (const CLI::CallForVersion& version) {
        print(fmt::format("{}\n", version.what()));
        return kDone;
    } catch (const CLI::ParseError& error) {
        return wrong_use(root, words, error);
    }

    if (const auto logging = log::configure_from_environment("sluice"); !logging) {
        return fail(kWrongUse, logging.error());
    }
    for (const auto& [sub, start] : runs) {
        if (sub->parsed()) return start();
    }
    return kWrongUse;
}

}  // namespace
}  // namespace sluice::app

int main(int argc, char** argv) {
    int code = sluice::app::kFailed;
    try {
        code = sluice::app::run(argc, argv);
    } catch (const std::exception& error) {
        sluice::app::fail(sluice::app::kFailed, error.what());
    }
    // A full disk must not look like success.
    if (std::fflush(stdout) != 0 && code == sluice::app::kDone) {
        code = sluice::app::fail(sluice::app::kFailed, "cannot write to stdout");
    }
    return code;
}
