#include "record/card.h"

#include <algorithm>

namespace sluice::record {

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::kBetter: return "better";
        case Verdict::kSame: return "same";
        case Verdict::kWorse: return "worse";
        case Verdict::kInsufficient: return "insufficient";
    }
    return "insufficient";
}

std::uint64_t CardRow::successes() const {
    const auto ok = outcomes.find(Outcome::kOk);
    return ok == outcomes.end() ? 0 : ok->second;
}

std::optional<double> CardRow::success_rate() const {
    if (requests == 0) return std::nullopt;
    return static_cast<double>(successes()) / static_cast<double>(requests);
}

std::optional<double> CardRow::cost_per_success() const {
    if (successes() == 0) return std::nullopt;
    return cost / static_cast<double>(successes());
}

Verdict Card::verdict() const {
    const auto any = [this](Verdict verdict) {
        return std::ranges::any_of(rows, [&](const CardRow& row) {
            return row.pool == candidate && row.verdict == verdict;
        });
    };
    if (any(Verdict::kWorse)) return Verdict::kWorse;
    if (any(Verdict::kInsufficient)) return Verdict::kInsufficient;
    if (any(Verdict::kSame)) return Verdict::kSame;
    return any(Verdict::kBetter) ? Verdict::kBetter : Verdict::kInsufficient;
}

}  // namespace sluice::record
