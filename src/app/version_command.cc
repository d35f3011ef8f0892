#include <CLI/CLI.hpp>
#include <memory>
#include <ranges>

#include "app/command.h"
#include "base/version.h"
#include "tensor/math_constants.h"
#include "tensor/target.h"

namespace sluice::app {

Run define_version(CLI::App& command) {
    auto json = std::make_shared<bool>(false);
    command.add_flag("--json", *json, "Print one JSON object");
    return [json] {
        Arithmetic arithmetic{.version = tensor::kArithmeticVersion};
        for (const tensor::Target target : std::views::reverse(tensor::available_targets()))
            arithmetic.targets.emplace_back(to_string(target));
        print(*json ? version_json(arithmetic) + "\n" : version_text(arithmetic));
        return kDone;
    };
}

}  // namespace sluice::app
