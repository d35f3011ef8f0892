#include "app/gate_ask.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace sluice::app {
namespace {

/// One line on a terminal; a log gets the end of each round only.
void show(const std::string& round, std::size_t done, std::size_t all) {
    const bool terminal = isatty(STDERR_FILENO) == 1;
    if (!terminal && done < all) return;
    std::fputs(fmt::format("{}{}: {} of {} answers{}", terminal ? "\r" : "", round, done, all,
                           terminal && done < all ? "\033[K" : "\n")
                   .c_str(),
               stderr);
}

}  // namespace

void add_ask_options(CLI::App& command, AskOptions& options) {
    add_api_options(command, options.api);
    command.add_option("--pool", options.pool, "Ask this pool of a Sluice, whatever its plan says")
        ->type_name("NAME");
}

Result<std::unique_ptr<Asked>> Asked::open(const AskOptions& options, gates::VerifyOptions verify) {
    auto target = api_target(options.api);
    if (!target) return std::unexpected(target.error());
    std::unique_ptr<Asked> asked(new Asked());
    if (const auto chosen = choose_model(asked->loop_, asked->client_, *target); !chosen)
        return std::unexpected(chosen.error());
    asked->model_ = target->model;
    if (!options.pool.empty()) verify.headers.add("x-sluice-pool", options.pool);
    asked->verifier_ = std::make_unique<gates::Verifier>(
        asked->loop_, asked->client_, std::move(*target), std::move(verify), show);
    return asked;
}

}  // namespace sluice::app
