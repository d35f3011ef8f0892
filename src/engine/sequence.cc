#include "engine/sequence.h"

#include <span>
#include <utility>

namespace sluice::engine {

void Sequence::name_blocks(std::size_t count, std::size_t block_tokens) {
    while (keys.size() < count) {
        const std::size_t begin = keys.size() * block_tokens;
        keys.push_back(names.child(keys.empty() ? names.root() : keys.back(), begin,
                                   std::span(tokens).subspan(begin, block_tokens)));
    }
}

SequencePtr make_sequence(Request request, OutputSink sink, const kv::BlockKeyRoot& key_root,
                          const std::vector<TokenId>& end_tokens, std::size_t block_tokens) {
    kv::KeyChain names(key_root, request.salt);
    Sampler sampler(request.sampling, end_tokens, request.input_ids);
    for (const TokenId token : request.resume_output_ids) sampler.accept(token);
    std::vector<TokenId> tokens = request.input_ids;
    tokens.insert(tokens.end(), request.resume_output_ids.begin(), request.resume_output_ids.end());
    tokens.reserve(request.input_ids.size() + request.sampling.max_new_tokens);
    const std::size_t prompt_tokens = request.input_ids.size();
    const std::size_t most_blocks = tokens.capacity() / block_tokens + 1;
    auto sequence = std::make_unique<Sequence>(Sequence{.request = std::move(request),
                                                        .sink = std::move(sink),
                                                        .sampler = std::move(sampler),
                                                        .tokens = std::move(tokens),
                                                        .prompt_tokens = prompt_tokens,
                                                        .blocks = {},
                                                        .names = std::move(names),
                                                        .keys = {},
                                                        .progress = {}});
    // What grows in a step gets its memory here.
    sequence->blocks.reserve(most_blocks);
    sequence->keys.reserve(most_blocks);
    sequence->name_blocks((sequence->tokens.size() - 1) / block_tokens, block_tokens);
    sequence->draft.reserve(LookupDrafter::kDraftMax);
    sequence->progress.tokens.reserve(LookupDrafter::kDraftMax + 1);
    if (sequence->request.return_logprobs)
        sequence->progress.logprobs.reserve(LookupDrafter::kDraftMax + 1);
    return sequence;
}

}  // namespace sluice::engine
