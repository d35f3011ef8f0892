#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "app/command.h"

namespace sluice::app {

Run define_bench(CLI::App& command);
Run define_card(CLI::App& command);
Run define_config(CLI::App& command);
Run define_ctl(CLI::App& command);
Run define_down(CLI::App& command);
Run define_engine(CLI::App& command);
Run define_gate(CLI::App& command);
Run define_gateway(CLI::App& command);
Run define_kvnode(CLI::App& command);
Run define_limits(CLI::App& command);
Run define_model(CLI::App& command);
Run define_run(CLI::App& command);
Run define_sim(CLI::App& command);
Run define_sim_cache(CLI::App& command);
Run define_up(CLI::App& command);
Run define_version(CLI::App& command);

namespace {

constexpr auto kCommands = std::to_array<Command>({
    {"up", "Start a gateway and its engines, and keep them running", define_up},
    {"down", "Stop what `up --detach` started", define_down},
    {"run", "Answer one prompt, or a file of them, without a server", define_run},
    {"model", "Look into a model: info, tokens, prompts, logits", define_model},
    {"gateway", "Serve clients in front of engines that already run", define_gateway},
    {"engine", "Run a model behind the engine port, for a gateway that runs elsewhere",
     define_engine},
    {"kvnode", "Keep KV blocks for engines that run elsewhere: a cache node", define_kvnode},
    {"ctl", "Look at a running service, and control it", define_ctl},
    {"gate", "Questions to ask before a change meets traffic", define_gate},
    {"card", "Lay a candidate pool beside the one that answers", define_card},
    {"bench", "Measure speed", define_bench},
    {"sim", "Play a trace on simulated engines: policies, capacity, faults", define_sim},
    {"sim-cache", "Play a trace on a shared cache alone: policies, sizes, nodes", define_sim_cache},
    {"config", "Check a configuration file, or show every setting with its place", define_config},
    {"limits", "Print every bound and what happens beyond it", define_limits},
    {"version", "Print what this program is and how it was built", define_version},
});

}  // namespace

std::span<const Command> commands() { return kCommands; }

Run define_verbs(CLI::App& command, std::span<const Command> verbs) {
    command.require_subcommand(1);
    std::vector<std::pair<const CLI::App*, Run>> runs;
    for (const Command& verb : verbs) {
        CLI::App* sub = command.add_subcommand(std::string(verb.name), std::string(verb.summary));
        runs.emplace_back(sub, verb.define(*sub));
    }
    return [runs = std::move(runs)]() -> int {
        for (const auto& [sub, start] : runs) {
            if (sub->parsed()) return start();
        }
        return kWrongUse;
    };
}

int fail(ExitCode code, std::string_view message) {
    const std::string line = "sluice: " + std::string(message) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    return code;
}

int fail(ExitCode code, const Error& error) { return fail(code, error.to_string()); }

int fail(ExitCode code, const std::vector<Error>& errors) {
    for (const Error& error : errors) fail(code, error);
    return code;
}

bool is_unreadable(const Error& error) {
    return error.code() == ErrorCode::kIo || error.code() == ErrorCode::kNotFound;
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace sluice::app
