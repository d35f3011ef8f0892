#include "base/nearest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr std::size_t kLongest = 64;
using Row = std::array<std::size_t, kLongest + 1>;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    a = a.substr(0, kLongest);
    b = b.substr(0, kLongest);
    Row two_back{};
    Row back{};
    Row row{};
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        two_back = back;
        back = row;
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = back[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({back[j] + 1, row[j - 1] + 1, substituted});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], two_back[j - 2] + 1);
        }
    }
    return row[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
    std::string_view best;
    // A third of the letters wrong is another word, not a slip.
    std::size_t best_distance = std::max<std::size_t>(1, (name.size() + 1) / 3) + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
    const std::string_view nearest = nearest_name(name, candidates);
    return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace sluice
