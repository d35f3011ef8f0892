#include <CLI/CLI.hpp>
#include <array>

#include "app/command.h"

namespace sluice::app {

// One verb, one file: gate_VERB.cc.
Run define_gate_compat(CLI::App& verb);
Run define_gate_baseline(CLI::App& verb);
Run define_gate_verify(CLI::App& verb);
Run define_gate_service(CLI::App& verb);

namespace {

constexpr auto kVerbs = std::to_array<Command>({
    {"compat", "Can this machine, or the server at a URL, run the engine that is planned?",
     define_gate_compat},
    {"baseline", "Store answers that are held to be right, and compare others with them",
     define_gate_baseline},
    {"verify", "Does a pool give the same answers alone, among others, and after an interruption?",
     define_gate_verify},
    {"service", "Who and what is there for everything that can go wrong?", define_gate_service},
});

}  // namespace

Run define_gate(CLI::App& command) { return define_verbs(command, kVerbs); }

}  // namespace sluice::app
