#pragma once

// One live request inside the engine. `tokens` is prompt and output together; its first `computed`
// tokens have their keys and values in `blocks`. A sequence is ready to sample when all its tokens
// are computed.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/lookup_drafter.h"
#include "engine/mtp_drafter.h"
#include "engine/request.h"
#include "engine/sampler.h"

namespace sluice::engine {

enum class DraftSource : std::uint8_t { kLookup, kMtp };

struct Sequence {
    Request request;
    OutputSink sink;
    Sampler sampler;
    std::uint64_t arrival = 0;  ///< Order of submission.

    std::vector<TokenId> tokens;
    std::size_t prompt_tokens = 0;
    std::size_t computed = 0;
    bool admitted = false;    ///< Has run before; a preempted sequence has, too.
    std::size_t cached = 0;   ///< Prompt tokens taken from the pool instead of being computed.
    std::size_t reached = 0;  ///< Tokens that were computed before it lost its place.

    std::vector<BlockIndex> blocks;
    kv::KeyChain names;
    std::vector<kv::BlockKey> keys;  ///< Of the leading full blocks, as far as known.

    /// Speculation: guesses of the tokens after `tokens`, for the next step alone.
    std::vector<TokenId> draft;
    DraftSource drafted_by = DraftSource::kLookup;
    LookupDrafter lookup;
    MtpMemory mtp;
    std::size_t draft_accepted = 0;  ///< Of `draft`, in the current step.
    bool draft_broken = false;       ///< A pick differed from its guess: later rows mean nothing.

    Output progress;  ///< What the next call of `sink` will say.

    /// Computes `keys` for the first `blocks` blocks of `block_tokens` tokens, which are there.
    void name_blocks(std::size_t blocks, std::size_t block_tokens);

    /// Of a block among `keys`.
    [[nodiscard]] NamedBlock name_of(std::size_t block) const {
        return {.key = keys[block],
                .parent = block == 0 ? names.root() : keys[block - 1],
                .first = block == 0};
    }

    [[nodiscard]] std::size_t pending() const { return tokens.size() - computed; }
    [[nodiscard]] std::size_t output_tokens() const { return tokens.size() - prompt_tokens; }
};

using SequencePtr = std::unique_ptr<Sequence>;

/// A checked request as it begins: its blocks named, as far as they are known, and with memory for all
/// that grows in a step. `end_tokens` end any answer.
[[nodiscard]] SequencePtr make_sequence(Request request, OutputSink sink,
                                        const kv::BlockKeyRoot& key_root,
                                        const std::vector<TokenId>& end_tokens,
                                        std::size_t block_tokens);

}  // namespace sluice::engine
