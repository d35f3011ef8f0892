#pragma once

// The first gate: can this machine, or the server behind a URL, run what is planned? Each engine's
// support matrix is a list of checks.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gates/gate_report.h"
#include "gates/machine_facts.h"

namespace sluice::gates {

/// Engines with a support matrix, and those that say their version themselves.
enum class CompatEngine : std::uint8_t { kNative, kDeepInfer, kVllm, kSglang, kLlamaCpp };

[[nodiscard]] std::string_view to_string(CompatEngine engine);
[[nodiscard]] std::optional<CompatEngine> parse_compat_engine(std::string_view name);

/// What a running server said of itself.
struct ServerFacts {
    std::string url;
    std::string version;  ///< Empty if it did not say.
    std::vector<std::string> models;
    std::string error;  ///< Why it could not be asked; empty if it could.
};

/// Where `engine` tells its version, below the server's root: "/version".
[[nodiscard]] std::string_view version_path(CompatEngine engine);
/// Takes the version out of that answer; empty if it is not there.
[[nodiscard]] std::string version_of(CompatEngine engine, std::string_view body);

/// Checks of the machine: native and DeepInfer. `model` is the one that will be served, empty if that
/// is not known.
[[nodiscard]] std::vector<GateItem> check_machine(CompatEngine engine, const MachineFacts& facts,
                                                  std::string_view model);
/// Checks of a server: vLLM, SGLang, llama.cpp.
[[nodiscard]] std::vector<GateItem> check_server(CompatEngine engine, const ServerFacts& server,
                                                 std::string_view model);

}  // namespace sluice::gates
