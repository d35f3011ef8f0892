#include <CLI/CLI.hpp>
#include <memory>

#include "app/command.h"
#include "base/version.h"

namespace sluice::app {

Run define_version(CLI::App& command) {
    auto json = std::make_shared<bool>(false);
    command.add_flag("--json", *json, "Print one JSON object");
    return [json] {
        const Arithmetic arithmetic;
        print(*json ? version_json(arithmetic) + "\n" : version_text(arithmetic));
        return kDone;
    };
}

}  // namespace sluice::app
