#include "kv/usable_prefix.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"

namespace sluice::kv {
namespace {

/// Ranges that come by rising begin, joined where they touch.
class Ranges {
public:
    void add(const TokenRange& range) {
        if (range.tokens() == 0) return;
        if (last_ && range.begin <= last_->end) {
            last_->end = std::max(last_->end, range.end);
            return;
        }
        if (last_) closed_ += last_->tokens();
        last_ = range;
    }
    [[nodiscard]] std::uint64_t tokens() const { return closed_ + (last_ ? last_->tokens() : 0); }

private:
    std::uint64_t closed_ = 0;  ///< Tokens of all but the last.
    std::optional<TokenRange> last_;
};

/// A place where a hit may end, and where the computing starts that leads there.
struct End {
    std::uint64_t start = 0;
    std::uint64_t tokens = 0;
};

class Planner {
public:
    Planner(std::span<const Component> components, std::span<const StoredParts> stored,
            std::uint64_t prompt_tokens);
    [[nodiscard]] UsablePrefix plan() const;

private:
    [[nodiscard]] bool is_stored(std::size_t component, std::size_t part) const {
        return part < stored_[component].size() && stored_[component][part];
    }
    [[nodiscard]] bool rows(std::size_t component) const {
        return components_[component].kind == ComponentKind::kRows &&
               components_[component].replay_tokens == 0;
    }
    [[nodiscard]] bool state(std::size_t component) const {
        return components_[component].kind == ComponentKind::kState &&
               components_[component].replay_tokens == 0;
    }
    void find_holes(std::size_t component);
    void find_boundaries();
    [[nodiscard]] std::uint64_t start_for(std::uint64_t token) const;
    [[nodiscard]] std::vector<End> ends() const;
    [[nodiscard]] End best() const;
    [[nodiscard]] std::vector<TokenRange> computed(const End& end) const;
    void load_rows(std::size_t component, UsablePrefix& prefix) const;
    void load_states(std::size_t component, UsablePrefix& prefix) const;

    std::span<const Component> components_;
    std::span<const StoredParts> stored_;
    std::uint64_t limit_;  ///< No hit ends behind it.
    std::uint64_t replay_ = 0;
    bool states_ = false;
    std::vector<TokenRange> holes_;          ///< Of any rows, by rising begin.
    std::vector<std::uint64_t> boundaries_;  ///< Where all states are.
};

Planner::Planner(std::span<const Component> components, std::span<const StoredParts> stored,
                 std::uint64_t prompt_tokens)
    : components_(components), stored_(stored), limit_(prompt_tokens == 0 ? 0 : prompt_tokens - 1) {
    SLUICE_ASSERT(components.size() == stored.size());
    for (std::size_t i = 0; i < components_.size(); ++i) {
        SLUICE_ASSERT(components_[i].quantum > 0);
        replay_ = std::max<std::uint64_t>(replay_, components_[i].replay_tokens);
        states_ = states_ || state(i);
        // Behind what no rows reach to, there is nothing to be had.
        if (rows(i))
            limit_ = std::min(limit_, stored_[i].size() * std::uint64_t{components_[i].quantum});
    }
    for (std::size_t i = 0; i < components_.size(); ++i)
        if (rows(i)) find_holes(i);
    std::ranges::sort(holes_, {}, &TokenRange::begin);
    find_boundaries();
}

void Planner::find_holes(std::size_t component) {
    const std::uint64_t quantum = components_[component].quantum;
    for (std::size_t block = 0; block * quantum < limit_; ++block) {
        if (is_stored(component, block)) continue;
        if (!components_[component].holes) {
            limit_ = block * quantum;
            return;
        }
        holes_.push_back({.begin = block * quantum, .end = (block + 1) * quantum});
    }
}

void Planner::find_boundaries() {
    std::uint64_t step = 1;
    for (std::size_t i = 0; i < components_.size(); ++i)
        if (state(i)) step = std::max<std::uint64_t>(step, components_[i].quantum);
    if (!states_) return;
    for (std::uint64_t at = step; at <= limit_; at += step) {
        const auto has = [&](std::size_t i) {
            const std::uint64_t quantum = components_[i].quantum;
            return !state(i) || (at % quantum == 0 && is_stored(i, at / quantum - 1));
        };
        bool all = true;
        for (std::size_t i = 0; i < components_.size(); ++i) all = all && has(i);
        if (all) boundaries_.push_back(at);
    }
}

/// Where computing starts that is right from `token` on.
std::uint64_t Planner::start_for(std::uint64_t token) const {
    if (token <= replay_) return 0;
    const std::uint64_t latest = token - replay_;
    if (!states_) return latest;
    const auto after = std::ranges::upper_bound(boundaries_, latest);
    return after == boundaries_.begin() ? 0 : *std::prev(after);
}

std::vector<End> Planner::ends() const {
    std::vector<End> ends;
    if (states_) {
        for (const std::uint64_t boundary : boundaries_)
            if (boundary + replay_ <= limit_)
                ends.push_back({.start = boundary, .tokens = boundary + replay_});
        return ends;
    }
    std::vector<std::uint64_t> tokens{limit_};
    for (std::size_t i = 0; i < components_.size(); ++i) {
        if (!rows(i)) continue;
        const std::uint64_t quantum = components_[i].quantum;
        for (std::uint64_t at = quantum; at <= limit_; at += quantum) tokens.push_back(at);
    }
    std::ranges::sort(tokens);
    for (const std::uint64_t each : tokens)
        if (each > replay_) ends.push_back({.start = each - replay_, .tokens = each});
    return ends;
}

End Planner::best() const {
    End best;
    std::uint64_t most = 0;
    Ranges before;  // Of the holes that lie whole before the end.
    auto hole = holes_.begin();
    for (const End& end : ends()) {
        for (; hole != holes_.end() && hole->end <= end.tokens; ++hole)
            before.add({.begin = start_for(hole->begin), .end = hole->end});
        Ranges ranges = before;
        for (auto cut = hole; cut != holes_.end() && cut->begin < end.tokens; ++cut)
            ranges.add({.begin = start_for(cut->begin), .end = end.tokens});
        ranges.add({.begin = end.start, .end = end.tokens});
        const std::uint64_t saved = end.tokens - ranges.tokens();
        if (saved <= most) continue;
        most = saved;
        best = end;
    }
    for (const Component& component : components_)
        if (most < component.min_hit) return {};
    return best;
}

std::vector<TokenRange> Planner::computed(const End& end) const {
    std::vector<TokenRange> ranges;
    const auto add = [&](std::uint64_t begin, std::uint64_t until) {
        if (begin >= until) return;
        if (!ranges.empty() && begin <= ranges.back().end) {
            ranges.back().end = std::max(ranges.back().end, until);
        } else {
            ranges.push_back({.begin = begin, .end = until});
        }
    };
    for (const TokenRange& hole : holes_)
        if (hole.begin < end.tokens) add(start_for(hole.begin), std::min(hole.end, end.tokens));
    add(end.start, end.tokens);
    return ranges;
}

/// All that isn't computed in a place where computing is right already.
void Planner::load_rows(std::size_t component, UsablePrefix& prefix) const {
    const std::uint64_t quantum = components_[component].quantum;
    auto range = prefix.compute.begin();
    for (std::size_t block = 0; block * quantum < prefix.tokens; ++block) {
        const std::uint64_t begin = block * quantum;
        const std::uint64_t end = std::min(begin + quantum, prefix.tokens);
        while (range != prefix.compute.end() && range->end < end) ++range;
        const bool made = range != prefix.compute.end() &&
                          begin >= (range->begin == 0 ? 0 : range->begin + replay_);
        if (!made && is_stored(component, block)) prefix.load[component].push_back(block);
    }
}

void Planner::load_states(std::size_t component, UsablePrefix& prefix) const {
    const std::uint64_t quantum = components_[component].quantum;
    const auto load = [&](std::uint64_t at) {
        if (at > 0) prefix.load[component].push_back(at / quantum - 1);
    };
    for (const TokenRange& range : prefix.compute) load(range.begin);
    if (prefix.compute.empty() || prefix.compute.back().end < prefix.tokens) load(prefix.tokens);
}

UsablePrefix Planner::plan() const {
    UsablePrefix prefix;
    prefix.load.resize(components_.size());
    const End end = best();
    if (end.tokens == 0) return prefix;
    prefix.tokens = end.tokens;
    prefix.compute = computed(end);
    for (std::size_t i = 0; i < components_.size(); ++i) {
        if (rows(i)) load_rows(i, prefix);
        if (state(i)) load_states(i, prefix);
    }
    return prefix;
}

}  // namespace

std::uint64_t UsablePrefix::computed() const {
    std::uint64_t tokens = 0;
    for (const TokenRange& range : compute) tokens += range.tokens();
    return tokens;
}

UsablePrefix usable_prefix(std::span<const Component> components,
                           std::span<const StoredParts> stored, std::uint64_t prompt_tokens) {
    return Planner(components, stored, prompt_tokens).plan();
}

}  // namespace sluice::kv
