#pragma once

// What a gate says: an item for each thing it looked at, with what was required, what was found, and a
// verdict. A gate passes if no item fails.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::gates {

enum class Verdict : std::uint8_t {
    kPass,
    kFail,
    kUnknown,  ///< Nothing says; a person has to look.
};

/// "pass", "fail", "unknown"
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct GateItem {
    std::string subject;  ///< "native", "batch 16", "row 7"
    std::string item;     ///< "CPU", "text"
    std::string required;
    std::string found;
    Verdict verdict = Verdict::kUnknown;
    std::string advice;  ///< What to do about it; empty if nothing is.
};

struct GateReport {
    std::string gate;  ///< "compat"
    std::vector<GateItem> items;

    [[nodiscard]] bool passed() const;
};

/// A table for terminals, the verdict on the last line.
[[nodiscard]] std::string to_text(const GateReport& report);
/// {"gate","passed","items":[{"subject","item","required","found","verdict","advice"?}]}
[[nodiscard]] std::string to_json(const GateReport& report);

}  // namespace sluice::gates
