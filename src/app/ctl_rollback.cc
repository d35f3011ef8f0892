#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "app/admin_client.h"
#include "app/command.h"
#include "app/ctl_operator.h"

namespace sluice::app {
namespace {

struct Options {
    AdminOptions admin;
    std::string why;
    bool evacuate = false;
};

int roll_back(const Options& options) {
    const auto body =
        call_admin(options.admin,
                   {.method = "POST",
                    .url = options.evacuate ? "/admin/rollback?evacuate=true" : "/admin/rollback",
                    .headers = operator_headers(options.why)});
    if (!body) return fail_admin(body.error());
    print(
        options.admin.json
            ? *body + "\n"
            : "rolled back: all traffic goes to the stable pool, until `sluice ctl plan rearm`\n");
    return kDone;
}

}  // namespace

Run define_ctl_rollback(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("--why", options->why, "For the audit log and the status")->type_name("TEXT");
    verb.add_flag(
        "--evacuate", options->evacuate,
        "Move answers that run elsewhere to the stable pool where they can go on exactly; "
        "without it they finish where they are");
    add_admin_options(verb, options->admin, "Print one JSON object: the plan");
    return [options] { return roll_back(*options); };
}

}  // namespace sluice::app
