#include "worker/kv_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kv/block_value.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

constexpr std::size_t kBlockTokens = engine::Engine::kBlockTokens;
/// Beyond a block's payload, no value has more.
constexpr std::size_t kAroundPayload = 512;

kv::Salt salt_of(const port::KvTerms& terms) {
    return {.shared = terms.salt, .own = terms.own_salt, .own_from = terms.own_from};
}

}  // namespace

std::shared_ptr<KvFetch> KvFetch::start(Host host, const port::GenerateRequest& request,
                                        std::function<void(const Fetched&)> on_done) {
    auto fetch = std::make_shared<KvFetch>(std::move(host), request, std::move(on_done));
    fetch->name_blocks();
    fetch->look();
    return fetch;
}

KvFetch::KvFetch(Host host, const port::GenerateRequest& request,
                 std::function<void(const Fetched&)> on_done)
    : host_(std::move(host)),
      on_done_(std::move(on_done)),
      rid_(request.rid),
      tokens_(request.input_ids),
      names_(host_.engine.key_root(), salt_of(request.kv)),
      sources_(request.kv.sources),
      hops_((request.input_ids.size() + request.resume_output_ids.size() - 1) / kBlockTokens) {
    tokens_.insert(tokens_.end(), request.resume_output_ids.begin(),
                   request.resume_output_ids.end());
    auto chain = std::make_shared<kvnode::Chain>();
    chain->tenant = request.kv.tenant;
    chain->retention = request.kv.retention;
    // The last token is always computed.
    chain->keys = names_.keys(std::span(tokens_).first(tokens_.size() - 1));
    chain_ = std::move(chain);
}

/// `work(self, ...)` as long as the fetch goes on.
template <class Work>
auto KvFetch::with_self(Work work) {
    return [weak = weak_from_this(),
            work = std::move(work)]<class... Arguments>(Arguments&&... arguments) {
        if (const auto self = weak.lock(); self && !self->over_)
            work(*self, std::forward<Arguments>(arguments)...);
    };
}

void KvFetch::name_blocks() {
    const std::vector<kv::BlockKey>& keys = chain_->keys;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        wanted_.push_back({.name = {.key = keys[i],
                                    .parent = i == 0 ? names_.root() : keys[i - 1],
                                    .first = i == 0},
                           .tokens = kBlockTokens});
    }
    trim_sources(keys);
    name_tail();
}

/// A source is of use as far as its names are ours.
void KvFetch::trim_sources(const std::vector<kv::BlockKey>& keys) {
    for (port::KvSource& source : sources_) {
        const auto ours = std::ranges::mismatch(source.keys, keys).in1 - source.keys.begin();
        if (static_cast<std::size_t>(ours) < source.keys.size()) source.tail_tokens = 0;
        source.keys.resize(static_cast<std::size_t>(ours));
        if (!source.hold.empty()) held_ = std::max(held_, source.keys.size());
    }
}

void KvFetch::name_tail() {
    const std::span usable = std::span(tokens_).first(tokens_.size() - 1);
    const std::size_t start = held_ * kBlockTokens;
    for (const port::KvSource& source : sources_) {
        if (source.hold.empty() || source.keys.size() < held_ || source.tail_tokens == 0) continue;
        if (source.tail_tokens >= kBlockTokens || start + source.tail_tokens > usable.size())
            continue;
        const kv::BlockKey& parent = held_ == 0 ? names_.root() : chain_->keys[held_ - 1];
        const auto held = usable.subspan(start, source.tail_tokens);
        tail_ = Wanted{.name = {.key = names_.child(parent, start, held),
                                .parent = parent,
                                .first = held_ == 0},
                       .tokens = source.tail_tokens};
        return;
    }
}

void KvFetch::look() {
    auto on_found = with_self(
        [](KvFetch& self, engine::BlockDesk::Found found) { self.on_look(std::move(found)); });
    host_.engine.with_blocks([loop = &host_.loop, chain = chain_,
                              on_found = std::move(on_found)](engine::BlockDesk& desk) {
        auto found = std::make_shared<engine::BlockDesk::Found>(desk.find(chain->keys));
        loop->post([on_found, found] { on_found(std::move(*found)); });
    });
}

void KvFetch::on_look(engine::BlockDesk::Found found) {
    auto next = found.names.begin();
    for (Wanted& each : wanted_) {
        if (next == found.names.end() || next->key != each.name.key) continue;
        each.source = kPool;
        ++next;
    }
    found_ = std::move(found.blocks);
    const bool complete = std::ranges::none_of(wanted_, &std::string_view::empty, &Wanted::source);
    if (complete && !tail_) return finish();
    if (host_.tiers.empty() || complete || host_.tiers.forced == kv::ForcedChoice::kRecompute)
        return add_hops();
    find_in_tiers();
}

std::chrono::nanoseconds KvFetch::look_up_time() const {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
        if (wanted_[i].source.empty()) missing.push_back(i);
    if (host_.tiers.forced) return host_.tiers.find_time;
    return kv::look_up_patience({.queue = queue_time(), .compute = compute_time(missing)},
                                host_.tiers.find_time);
}

// A tier that is known to answer too late isn't asked, but now and then, to know whether it still is
// so. What comes after `time` counts for its speed alone.
void KvFetch::find_in_tiers() {
    const auto began = Clock::now();
    const auto time = look_up_time();
    found_in_.resize(host_.tiers.all.size());
    for (std::size_t i = 0; i < host_.tiers.all.size(); ++i) {
        KvTier& tier = *host_.tiers.all[i];
        if (!tier.in_use) continue;
        if (tier.speed.round_trip() > time && !tier.speed.round_trip_is_stale(began)) continue;
        ++finds_;
        auto on_found = with_self([i](KvFetch& self, FoundIn found) {
            if (self.finds_ == 0) return;
            self.found_in_[i] = std::move(found);
            if (--self.finds_ == 0) self.end_finds();
        });
        tier.store->find(chain_, began + host_.tiers.find_time,
                         [began, &tier, on_found = std::move(on_found)](FoundIn found) {
                             const auto now = Clock::now();
                             tier.speed.asked(now - began, now);
                             on_found(std::move(found));
                         });
    }
    if (finds_ == 0) return add_hops();
    find_timer_ = host_.loop.call_after(time, [this] { end_finds(); });
}

void KvFetch::end_finds() {
    find_timer_.cancel();
    finds_ = 0;
    add_hops();
}

// In the order in which they are asked: who holds blocks for this request, this worker's memory, who
// has them by chance, everything further away.
void KvFetch::add_hops() {
    const auto add_peers = [this](bool handover) {
        for (const port::KvSource& source : sources_) {
            if (source.hold.empty() == handover) continue;
            KvHop hop{.source = kPeer, .speed = &host_.tiers.peers, .peer = &source};
            hop.has.assign(source.keys.size(), Retention::kNone);
            hops_.add(std::move(hop));
        }
    };
    add_peers(true);
    bool peers_added = false;
    for (std::size_t i = 0; i < found_in_.size(); ++i) {
        KvTier& tier = *host_.tiers.all[i];
        if (!tier.is_memory && !std::exchange(peers_added, true)) add_peers(false);
        hops_.add({.source = tier.name,
                   .speed = &tier.speed,
                   .store = tier.store.get(),
                   .has = std::move(found_in_[i])});
    }
    if (!peers_added) add_peers(false);
    decide();
}

kv::StoredParts KvFetch::here() const {
    kv::StoredParts here;
    for (const Wanted& each : wanted_) here.push_back(!each.source.empty());
    return here;
}

std::vector<std::size_t> KvFetch::to_load() const {
    const kv::StoredParts in_pool = here();
    kv::StoredParts there = in_pool;
    for (std::size_t i = 0; i < there.size(); ++i)
        there[i] = there[i] || hops_.first_with(i) != nullptr;
    std::vector<std::size_t> blocks = usable_blocks(there, tokens_.size()).load.front();
    std::erase_if(blocks, [&](std::size_t block) { return in_pool[block]; });
    return blocks;
}

std::chrono::nanoseconds KvFetch::queue_time() const {
    return host_.engine.prefill_time(0, host_.engine.stats().pending_tokens);
}

std::chrono::nanoseconds KvFetch::compute_time(std::span<const std::size_t> blocks) const {
    std::chrono::nanoseconds time{};
    for (auto first = blocks.begin(); first != blocks.end();) {
        auto last = first + 1;
        while (last != blocks.end() && *last == *(last - 1) + 1) ++last;
        time += host_.engine.prefill_time(*first * kBlockTokens,
                                          static_cast<std::size_t>(last - first) * kBlockTokens);
        first = last;
    }
    return time;
}

/// Of all that is left to do for the first token.
std::chrono::nanoseconds KvFetch::compute_time(const kv::UsablePrefix& prefix) const {
    std::chrono::nanoseconds time =
        host_.engine.prefill_time(prefix.tokens, tokens_.size() - prefix.tokens);
    for (const kv::TokenRange& range : prefix.compute)
        time += host_.engine.prefill_time(range.begin, range.tokens());
    return time;
}

void KvFetch::decide() {
    std::vector<std::size_t> blocks = to_load();
    std::erase_if(blocks, [this](std::size_t i) { return hops_.first_with(i)->is_handover(); });
    hops_.decide(std::move(blocks),
                 {.queue = queue_time(),
                  .block_bytes = block_bytes(host_.engine) + kAroundPayload,
                  .compute_time = [this](auto which) { return compute_time(which); },
                  .forced = host_.tiers.forced,
                  .load_time = host_.tiers.load_time,
                  .now = Clock::now()});
    make_room();
}

void KvFetch::make_room() {
    std::size_t count = 0;
    for (const std::size_t block : to_load()) wanted_[block].room = count++;
    if (tail_) tail_->room = count++;
    if (count == 0) return finish();
    auto on_room = with_self([](KvFetch& self, std::shared_ptr<engine::BlockHold> room) {
        self.on_room(std::move(room));
    });
    host_.engine.with_blocks(
        [loop = &host_.loop, count, on_room = std::move(on_room)](engine::BlockDesk& desk) {
            loop->post([on_room, room = desk.allocate(count)] { on_room(room); });
        });
}

void KvFetch::on_room(std::shared_ptr<engine::BlockHold> room) {
    room_ = std::move(room);
    if (!room_) return finish();  // The pool is full of what runs: all is computed.
    ask_next();
}

void KvFetch::ask_next() {
    while (const KvHop* const hop = hops_.next()) {
        asked_.clear();
        for (std::size_t i = 0; i < wanted_.size(); ++i)
            if (wanted_[i].source.empty() && wanted_[i].room && hop->has[i])
                asked_.push_back(&wanted_[i]);
        // The whole block is better than a part of it.
        const bool whole = held_ < wanted_.size() && !wanted_[held_].source.empty();
        if (hop->is_handover() && tail_ && tail_->source.empty() && !whole &&
            hop->peer->keys.size() == held_ && hop->peer->tail_tokens == tail_->tokens)
            asked_.push_back(&*tail_);
        if (!asked_.empty()) return ask(*hop);
    }
    finish();
}

void KvFetch::ask(const KvHop& hop) {
    const auto now = Clock::now();
    hop_began_ = now;
    hop_bytes_ = 0;
    if (hop.is_handover()) return ask_peer(hop, host_.options.pull_time);
    const auto until = deadline_of(hop, now);
    if (now >= until) return ask_next();
    if (hop.peer != nullptr) return ask_peer(hop, until - now);
    ask_store(hop, until);
}

KvFetch::Clock::time_point KvFetch::deadline_of(const KvHop& hop, Clock::time_point now) {
    if (hop.load && hop.load->choice == kv::LoadChoice::kProbe) return now + host_.tiers.find_time;
    if (hop.until) return *hop.until;
    if (!load_until_) load_until_ = now + host_.tiers.load_time;
    return *load_until_;
}

void KvFetch::ask_peer(const KvHop& hop, std::chrono::nanoseconds time) {
    std::vector<kv::BlockKey> keys;
    for (const Wanted* each : asked_) keys.push_back(each->name.key);
    pull_ = std::make_unique<KvPull>(
        KvPull::Host{.loop = host_.loop,
                     .client = host_.client,
                     .options = host_.options,
                     .value_bytes = room_->bytes(kBlockTokens) + kAroundPayload,
                     .tenant = chain_->tenant},
        *hop.peer, std::move(keys), time,
        KvPull::Callbacks{
            .on_value = with_self(
                [](KvFetch& self, std::size_t index, const kv::BlockValue& value,
                   std::string_view raw) { self.on_value(index, kPeer, value, raw.size()); }),
            .on_corrupt =
                with_self([](KvFetch& self, const Error& error) { self.on_corrupt(error); }),
            .on_end = with_self([](KvFetch& self, const std::string& why) { self.end_hop(why); })});
}

void KvFetch::ask_store(const KvHop& hop, Clock::time_point until) {
    std::vector<kvnode::FoundBlock> blocks;
    for (Wanted* const each : asked_) {
        const auto index = static_cast<std::size_t>(each - wanted_.data());
        blocks.push_back({.index = index, .retention = *hop.has[index]});
    }
    auto on_block = with_self(
        [source = hop.source](KvFetch& self, std::size_t index, const kv::SharedBytes& value) {
            const auto block = kv::open_checked_block(value.bytes);
            const auto asked = std::ranges::find(self.asked_, &self.wanted_[index]);
            if (!block || asked == self.asked_.end()) return;
            self.on_value(static_cast<std::size_t>(asked - self.asked_.begin()), source, *block,
                          value.bytes.size());
        });
    store_load_ = hop.store->load(chain_, std::move(blocks), until, std::move(on_block),
                                  with_self([](KvFetch& self) { self.end_hop({}); }));
}

void KvFetch::on_value(std::size_t asked, std::string_view source, const kv::BlockValue& value,
                       std::size_t bytes) {
    Wanted& wanted = *asked_[asked];
    const kv::BlockHeader& header = value.header;
    if (header.key != wanted.name.key || header.parent != wanted.name.parent ||
        header.tokens != wanted.tokens || header.component != host_.engine.key_root().component ||
        value.payload.size() != room_->bytes(wanted.tokens))
        return on_corrupt(Error::corrupt("the block's header does not fit its key"));
    if (!wanted.source.empty()) return;
    room_->write(*wanted.room, wanted.tokens, value.payload);
    wanted.source = source;
    hop_bytes_ += bytes;
}

void KvFetch::on_corrupt(const Error& error) {
    ++corrupt_;
    log::warn("request {}: a block is not taken: {}", rid_, error.message());
}

void KvFetch::end_hop(const std::string& why) {
    const auto self = shared_from_this();
    KvHop& hop = hops_.present();
    if (!why.empty())
        log::warn("request {}: blocks of {} can't be had: {}", rid_,
                  hop.peer != nullptr ? hop.peer->url : std::string(hop.source), why);
    const auto now = Clock::now();
    // One worker that is gone says nothing of the others.
    if (hop_bytes_ > 0 || hop.store != nullptr)
        hop.speed->loaded(hop_bytes_, now - hop_began_, now);
    if (hop.load) hop.load->took = now - hop_began_;
    pull_.reset();
    store_load_.reset();
    ask_next();
}

KvFetch::Fetched KvFetch::count() const {
    const kv::UsablePrefix prefix = usable_blocks(here(), tokens_.size());
    Fetched fetched{
        .imported_tokens = prefix.compute.empty() ? prefix.tokens : prefix.compute.front().begin,
        .missing_tokens = tokens_.size() - 1 - prefix.saved(),
        .corrupt_blocks = corrupt_,
        .loads = hops_.decisions(),
        .predicted = queue_time() + compute_time(prefix),
        .chain = chain_,
        .names = names_};
    const auto add = [&fetched](const Wanted& wanted) {
        if (wanted.source.empty() || wanted.source == kPool) return;
        fetched.tokens_by_source[std::string(wanted.source)] += wanted.tokens;
        ++fetched.blocks;
    };
    for (const Wanted& each : wanted_) {
        add(each);
        fetched.sources.push_back(each.source);
    }
    const bool tail_is_used = tail_ && !tail_->source.empty() &&
                              (held_ >= wanted_.size() || wanted_[held_].source.empty());
    if (!tail_is_used) return fetched;
    add(*tail_);
    fetched.missing_tokens -= tail_->tokens;
    if (fetched.imported_tokens == held_ * kBlockTokens) fetched.imported_tokens += tail_->tokens;
    return fetched;
}

engine::BlockDesk::Written KvFetch::written() const {
    engine::BlockDesk::Written written{
        .names = {},
        .last_is_partial = tail_.has_value(),
        .owner = {.tenant = engine::tenant_hash(chain_->tenant), .retention = chain_->retention}};
    written.names.resize(room_->size());
    const auto add = [&written](const Wanted& each) {
        if (each.room && !each.source.empty()) written.names[*each.room] = each.name;
    };
    for (const Wanted& each : wanted_) add(each);
    if (tail_) add(*tail_);
    return written;
}

void KvFetch::finish() {
    const auto self = shared_from_this();
    over_ = true;
    release_sources();
    const Fetched fetched = count();
    if (room_) {
        host_.engine.with_blocks([names = written(), room = std::move(room_)](
                                     engine::BlockDesk& desk) { desk.keep(*room, names); });
    }
    on_done_(fetched);
    found_.reset();  // By now the request is on its way to take them.
}

void KvFetch::release_sources() {
    for (const port::KvSource& source : sources_)
        if (!source.hold.empty()) host_.releases.send(source.url, source.hold);
}

void KvFetch::cancel() {
    if (std::exchange(over_, true)) return;
    pull_.reset();
    store_load_.reset();
    room_.reset();
    found_.reset();
    release_sources();
}

}  // namespace sluice::worker
