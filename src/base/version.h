#pragma once

// What this program is, for `sluice version`, records and /server_info.

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct Version {
    std::string version;   ///< "0.1.0"
    std::string commit;    ///< Of the source when it was configured, or "unknown".
    std::string compiler;  ///< "GCC 12.2.0"
    std::string flags;     ///< What decides speed and checks: optimisation, sanitizers.
};

[[nodiscard]] const Version& version();

/// "arithmetic" counts changes of result bits (docs/exactness.md); tensor/ owns the number. `targets`
/// are the instruction sets this machine can run, best first.
struct Arithmetic {
    int version = 0;
    std::vector<std::string> targets{};
};

[[nodiscard]] std::string version_text(const Arithmetic& arithmetic);
/// One JSON object: version, commit, compiler, flags, arithmetic, targets.
[[nodiscard]] std::string version_json(const Arithmetic& arithmetic);

}  // namespace sluice
