#pragma once

// How far a stored prefix helps: which of what is stored is worth loading, what must be computed all
// the same, and where the prompt's own computing starts.
//
// A model's persistent state has components. Rows are a value for each block of tokens; the ones of
// a block can be loaded or computed without those of others, so a hole is recomputed and what lies
// behind it is loaded. A state is one value at a boundary, every `quantum` tokens, that stands for
// everything before it: computing starts where all states are, or at the very beginning.
//
// A component that isn't stored (a decoder's sliding window) comes back by replaying some tokens. The
// figures of DeepInfer's engine, as an example: rows of 891 bytes a token; an encoder's window as a
// state of 1.42 MB, at multiples of 128 tokens; a decoder's window that is replayed.
//
// Pure: no tier, no time. Whether a load is sooner than computing is not asked here.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::kv {

enum class ComponentKind : std::uint8_t { kRows, kState };

struct Component {
    std::string name;  ///< "mla"
    ComponentKind kind = ComponentKind::kRows;
    /// Tokens of a block of rows, or from one boundary to the next; above 0.
    std::uint32_t quantum = 64;
    /// Above 0: a component that isn't stored. It is right again once so many tokens in a row were
    /// computed, during which the rows of all others must be there already.
    std::uint32_t replay_tokens = 0;
    /// A hit that saves fewer tokens isn't worth its loads.
    std::uint64_t min_hit = 0;
    /// Of rows: a hole can be computed, and what lies behind it be used.
    bool holes = true;
};

/// Of one component: rows by block, states by boundary (the first one at `quantum` tokens).
using StoredParts = std::vector<bool>;

struct TokenRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] std::uint64_t tokens() const { return end - begin; }
    bool operator==(const TokenRange&) const = default;
};

struct UsablePrefix {
    /// So many tokens of the prompt are done with once `load` is loaded and `compute` computed.
    std::uint64_t tokens = 0;
    /// By component: the parts to load, as indexes into what is stored.
    std::vector<std::vector<std::size_t>> load;
    /// Parts of those tokens that are computed nevertheless, in order: holes, the way to a hole from
    /// the last state before it, and what is replayed.
    std::vector<TokenRange> compute;

    [[nodiscard]] std::uint64_t computed() const;
    [[nodiscard]] std::uint64_t saved() const { return tokens - computed(); }
};

/// The hit that saves the most of `prompt_tokens`; of several the shortest. It ends before the last
/// token, whose logits are wanted. `stored` is by component; parts that it doesn't reach to are missing.
///
/// Without states it may end anywhere; with some it ends at a boundary where all of them are stored, or
/// `replay_tokens` behind one.
[[nodiscard]] UsablePrefix usable_prefix(std::span<const Component> components,
                                         std::span<const StoredParts> stored,
                                         std::uint64_t prompt_tokens);

}  // namespace sluice::kv
