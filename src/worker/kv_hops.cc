#include "worker/kv_hops.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/engine.h"

namespace sluice::worker {
namespace {

/// So many blocks tell how fast a tier is.
constexpr std::size_t kProbeBlocks = 8;

}  // namespace

kv::UsablePrefix usable_blocks(const kv::StoredParts& there, std::size_t prompt_tokens) {
    const kv::Component rows{
        .name = "rows", .kind = kv::ComponentKind::kRows, .quantum = engine::Engine::kBlockTokens};
    return kv::usable_prefix({&rows, 1}, {&there, 1}, prompt_tokens);
}

void KvHops::add(KvHop hop) {
    hop.has.resize(blocks_);
    all_.push_back(std::move(hop));
}

KvHop* KvHops::next() { return next_ == all_.size() ? nullptr : &all_[next_++]; }

const KvHop* KvHops::first_with(std::size_t block) const {
    const auto hop = std::ranges::find_if(
        all_, [block](const KvHop& each) { return each.has[block].has_value(); });
    return hop == all_.end() ? nullptr : &*hop;
}

void KvHops::decide(Blocks blocks, const LoadTerms& terms) {
    // What is loaded while others are computed is free, once.
    std::chrono::nanoseconds queue = terms.queue;
    kv::LoadPrediction all{.queue = terms.queue};
    const bool held = std::ranges::any_of(all_, &KvHop::is_handover);
    for (KvHop& hop : all_) {
        if (hop.is_handover()) continue;
        const Blocks loaded = decide_on(hop, blocks, queue, terms);
        std::erase_if(blocks, [&loaded](std::size_t block) {
            return std::ranges::binary_search(loaded, block);
        });
        if (hop.load && hop.load->choice == kv::LoadChoice::kLoad) {
            queue -= std::min(queue, hop.load->predicted.load);
            all.compute += hop.load->predicted.compute;
        }
        if (!hop.load && held) continue;
        hop.until =
            terms.now + (terms.forced ? terms.load_time : kv::patience(all, terms.load_time));
    }
}

KvHops::Blocks KvHops::decide_on(KvHop& hop, const Blocks& wanted, std::chrono::nanoseconds queue,
                                 const LoadTerms& terms) {
    Blocks blocks;
    std::ranges::copy_if(wanted, std::back_inserter(blocks),
                         [&hop](std::size_t block) { return hop.has[block].has_value(); });
    if (blocks.empty()) return blocks;
    const kv::LoadPrediction predicted{
        .queue = queue,
        .compute = terms.compute_time(blocks),
        .load = hop.speed->predict(blocks.size() * terms.block_bytes)};
    hop.load =
        LoadRecord{.source = hop.source,
                   .choice = kv::choose(predicted, terms.forced, hop.speed->stale(terms.now)),
                   .predicted = predicted,
                   .blocks = blocks.size()};
    if (hop.load->choice == kv::LoadChoice::kLoad) return blocks;
    // Nor is it asked for what others fail to bring.
    const auto all = std::exchange(hop.has, std::vector<std::optional<Retention>>(hop.has.size()));
    const bool is_probe = hop.load->choice == kv::LoadChoice::kProbe;
    blocks.resize(is_probe ? std::min(kProbeBlocks, blocks.size()) : 0);
    for (const std::size_t block : blocks) hop.has[block] = all[block];
    return blocks;
}

std::vector<LoadRecord> KvHops::decisions() const {
    std::vector<LoadRecord> decisions;
    for (const KvHop& hop : all_)
        if (hop.load) decisions.push_back(*hop.load);
    return decisions;
}

}  // namespace sluice::worker
