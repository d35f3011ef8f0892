#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "app/command.h"

namespace sluice::app {

// One verb, one file: ctl_VERB.cc.
Run define_ctl_drain(CLI::App& verb);
Run define_ctl_keys(CLI::App& verb);
Run define_ctl_kv(CLI::App& verb);
Run define_ctl_plan(CLI::App& verb);
Run define_ctl_records(CLI::App& verb);
Run define_ctl_rollback(CLI::App& verb);
Run define_ctl_status(CLI::App& verb);
Run define_ctl_where(CLI::App& verb);

namespace {

constexpr auto kVerbs = std::to_array<Command>({
    {"status", "What answers, how busy it is, and which way traffic goes", define_ctl_status},
    {"drain", "Give no more requests to a worker, and move what runs there", define_ctl_drain},
    {"rollback", "Send all traffic to the stable pool, and keep it there", define_ctl_rollback},
    {"plan", "The traffic plan: which pool answers, which get a share or copies", define_ctl_plan},
    {"keys", "Make, list and revoke API keys", define_ctl_keys},
    {"kv", "The cache: what it holds, its nodes, and what to keep or forget", define_ctl_kv},
    {"where", "Where a request is or was, and on which versions", define_ctl_where},
    {"records", "What is known of requests that are over", define_ctl_records},
});

}  // namespace

Run define_ctl(CLI::App& command) { return define_verbs(command, kVerbs); }

}  // namespace sluice::app
