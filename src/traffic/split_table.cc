#include "traffic/split_table.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/hash.h"

namespace sluice::traffic {
namespace {

/// The start of the split at `index`: 0, 1/2, 1/4, 3/4, 1/8, ... (van der Corput).
std::uint32_t start_of(std::size_t index) {
    double start = 0.0;
    double part = 0.5;
    for (; index != 0; index >>= 1, part *= 0.5)
        if ((index & 1) != 0) start += part;
    return static_cast<std::uint32_t>(start * SplitTable::kUnits);
}

}  // namespace

std::uint32_t place_of(std::string_view conversation, std::string_view salt, std::string_view use) {
    std::string name;
    name.reserve(salt.size() + use.size() + conversation.size() + 2);
    name.append(salt).append(1, '\0').append(use).append(1, '\0').append(conversation);
    const std::uint64_t hash = xxh3_128(std::as_bytes(std::span(name))).low;
    return static_cast<std::uint32_t>(hash % SplitTable::kUnits);
}

SplitTable::SplitTable(const std::vector<Split>& splits) {
    std::vector<std::uint32_t> starts;
    for (std::size_t i = 0; i < splits.size(); ++i) starts.push_back(start_of(i));
    std::vector<std::uint32_t> left(splits.size());
    for (std::size_t i = 0; i < splits.size(); ++i) {
        const auto units = static_cast<std::uint32_t>(std::lround(splits[i].weight * kUnits));
        std::uint32_t next = kUnits;
        for (const std::uint32_t start : starts)
            if (start > starts[i]) next = std::min(next, start);
        const std::uint32_t own = std::min(units, next - starts[i]);
        give(starts[i], starts[i] + own, i);
        left[i] = units - own;
    }
    for (std::size_t i = 0; i < splits.size(); ++i) overflow(left[i], i);
}

void SplitTable::give(std::uint32_t begin, std::uint32_t end, std::size_t split) {
    if (begin == end) return;
    const auto after = std::ranges::upper_bound(parts_, begin, {}, &Part::begin);
    parts_.insert(after, {begin, end, split});
}

void SplitTable::overflow(std::uint32_t units, std::size_t split) {
    while (units > 0) {
        // The topmost gap lies below the last parts that leave none.
        std::uint32_t end = kUnits;
        std::size_t below = parts_.size();
        while (below > 0 && parts_[below - 1].end == end) end = parts_[--below].begin;
        const std::uint32_t begin = below == 0 ? 0 : parts_[below - 1].end;
        const std::uint32_t taken = std::min(units, end - begin);
        if (taken == 0) return;  // Weights above 1 together: there is no more.
        give(end - taken, end, split);
        units -= taken;
    }
}

std::optional<std::size_t> SplitTable::owner(std::uint32_t place) const {
    const auto after = std::ranges::upper_bound(parts_, place, {}, &Part::begin);
    if (after == parts_.begin()) return std::nullopt;
    const Part& part = *std::prev(after);
    if (place >= part.end) return std::nullopt;
    return part.split;
}

}  // namespace sluice::traffic
