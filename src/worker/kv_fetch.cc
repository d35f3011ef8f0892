#include "worker/kv_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kv/block_value.h"
#include "port/kv_pull.h"

namespace sluice::worker {
namespace {

constexpr std::size_t kBlockTokens = engine::Engine::kBlockTokens;
/// Beyond a block's payload, no value has more.
constexpr std::size_t kAroundPayload = 512;

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
      sources_(request.kv.sources) {
    tokens_.insert(tokens_.end(), request.resume_output_ids.begin(),
                   request.resume_output_ids.end());
    names_ = kv::KeyChain(
        host_.engine.key_root(),
        {.shared = request.kv.salt, .own = request.kv.own_salt, .own_from = request.kv.own_from});
}

// The last token is always computed. A source is of use as far as its names are ours.
void KvFetch::name_blocks() {
    const std::span usable = std::span(tokens_).first(tokens_.size() - 1);
    const std::vector<kv::BlockKey> keys = names_.keys(usable);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        wanted_.push_back({.name = {.key = keys[i],
                                    .parent = i == 0 ? names_.root() : keys[i - 1],
                                    .first = i == 0},
                           .tokens = kBlockTokens});
    }
    for (port::KvSource& source : sources_) {
        const auto ours = std::ranges::mismatch(source.keys, keys).in1 - source.keys.begin();
        if (static_cast<std::size_t>(ours) < source.keys.size()) source.tail_tokens = 0;
        source.keys.resize(static_cast<std::size_t>(ours));
        held_ = std::max(held_, source.keys.size());
    }
    for (const port::KvSource& source : sources_) {
        const std::size_t start = held_ * kBlockTokens;
        if (source.keys.size() < held_ || source.tail_tokens == 0 || tail_) continue;
        if (source.tail_tokens >= kBlockTokens || start + source.tail_tokens > usable.size())
            continue;
        const kv::BlockKey& parent = held_ == 0 ? names_.root() : keys[held_ - 1];
        const auto held = usable.subspan(start, source.tail_tokens);
        tail_ = Wanted{.name = {.key = names_.child(parent, start, held),
                                .parent = parent,
                                .first = held_ == 0},
                       .tokens = source.tail_tokens};
    }
}

void KvFetch::look() {
    std::vector<kv::BlockKey> keys;
    for (const Wanted& each : wanted_) keys.push_back(each.name.key);
    host_.engine.with_blocks([weak = weak_from_this(), loop = &host_.loop, keys = std::move(keys),
                              held = held_, tail = tail_.has_value()](engine::BlockDesk& desk) {
        auto look = std::make_shared<Look>();
        look->found = desk.find(keys);
        // What no source has needs no room.
        std::size_t there = 0;
        for (std::size_t i = 0; i < held && there < look->found.names.size(); ++i)
            if (look->found.names[there].key == keys[i]) ++there;
        look->room = desk.allocate(held - there + (tail ? 1 : 0));
        loop->post([weak, look] {
            if (const auto self = weak.lock(); self && !self->over_)
                self->on_look(std::move(*look));
        });
    });
}

void KvFetch::on_look(Look look) {
    auto found = look.found.names.begin();
    std::size_t room = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        Wanted& each = wanted_[i];
        each.is_there = found != look.found.names.end() && found->key == each.name.key;
        if (each.is_there) {
            ++found;
        } else if (i < held_) {
            each.room = room++;
        }
    }
    if (tail_) tail_->room = room++;
    found_ = std::move(look.found.blocks);
    room_ = std::move(look.room);
    if (!room_) return finish();  // The pool is full of what runs: all is computed.
    ask_next_source();
}

std::vector<KvFetch::Wanted*> KvFetch::missing(std::size_t full, bool with_tail) {
    std::vector<Wanted*> missing;
    for (std::size_t i = 0; i < full; ++i)
        if (!wanted_[i].is_there) missing.push_back(&wanted_[i]);
    // The whole block is better than a part of it.
    const bool whole = held_ < wanted_.size() && wanted_[held_].is_there;
    if (with_tail && tail_ && !tail_->is_there && !whole) missing.push_back(&*tail_);
    return missing;
}

void KvFetch::ask_next_source() {
    while (next_source_ < sources_.size()) {
        const port::KvSource& source = sources_[next_source_++];
        const bool has_tail =
            tail_ && source.keys.size() == held_ && source.tail_tokens == tail_->tokens;
        asked_ = missing(source.keys.size(), has_tail);
        if (!asked_.empty()) return ask(source);
    }
    finish();
}

void KvFetch::ask(const port::KvSource& source) {
    port::KvPullRequest request{.hold = source.hold, .keys = {}};
    for (const Wanted* each : asked_) request.keys.push_back(each->name.key);
    next_asked_ = 0;
    buffer_.clear();
    const auto with_self = [weak = weak_from_this()](auto work) {
        if (const auto self = weak.lock(); self && !self->over_) work(*self);
    };
    deadline_ =
        host_.loop.call_after(host_.options.pull_time, [this] { end_hop("it takes too long"); });
    call_ = host_.client.start(
        {.method = "POST",
         .url = source.url + "/kv/pull",
         .headers = {{"Content-Type", "application/json"}},
         .body = port::to_json(request),
         .connect_time = host_.options.connect_time,
         .head_time = host_.options.stall_time,
         .stall_time = host_.options.stall_time,
         .repeatable = true},
        {.on_head =
             [with_self](int status, const net::HttpHeaders&) {
                 with_self([status](KvFetch& self) { self.status_ = status; });
             },
         .on_data =
             [with_self](std::string_view data) {
                 with_self([data](KvFetch& self) { self.on_data(data); });
             },
         .on_done = [with_self] { with_self([](KvFetch& self) { self.on_done(); }); },
         .on_error =
             [with_self](const Error& error) {
                 with_self([&error](KvFetch& self) { self.end_hop(error.message()); });
             }});
}

/// Of the value at the start of the buffer; 0 if that is not known yet.
Result<std::size_t> KvFetch::value_bytes() const {
    if (buffer_.size() < kv::kBlockPrefixBytes) return 0;
    const auto bytes = kv::block_value_bytes(buffer_);
    if (bytes && *bytes > room_->bytes(kBlockTokens) + kAroundPayload)
        return std::unexpected(Error::corrupt("a block is larger than this engine's"));
    return bytes;
}

void KvFetch::on_done() {
    end_hop(status_ == 200 ? std::string() : fmt::format("the status is {}", status_));
}

void KvFetch::on_data(std::string_view data) {
    if (status_ != 200) return;
    received_bytes_ += data.size();
    while (!data.empty()) {
        auto whole = value_bytes();
        if (!whole) return end_hop(whole.error().message());
        const std::size_t wanted = *whole == 0 ? kv::kBlockPrefixBytes : *whole;
        const std::string_view taken = data.substr(0, wanted - buffer_.size());
        buffer_ += taken;
        data.remove_prefix(taken.size());
        if (*whole == 0 || buffer_.size() < *whole) continue;
        if (const auto ok = take(buffer_); !ok) {
            ++corrupt_;
            log::warn("request {}: a pulled block is not taken: {}", rid_, ok.error().message());
        }
        buffer_.clear();
    }
}

Result<void> KvFetch::take(std::string_view value) {
    const auto block = kv::decode_block(value);
    if (!block) return std::unexpected(block.error());
    const kv::BlockHeader& header = block->header;
    // The source keeps the order, and leaves out what it doesn't have.
    while (next_asked_ < asked_.size() && asked_[next_asked_]->name.key != header.key)
        ++next_asked_;
    if (next_asked_ == asked_.size())
        return std::unexpected(Error::corrupt("nobody asked for this block"));
    Wanted& wanted = *asked_[next_asked_++];
    if (header.parent != wanted.name.parent || header.tokens != wanted.tokens ||
        header.component != host_.engine.key_root().component ||
        block->payload.size() != room_->bytes(wanted.tokens))
        return std::unexpected(Error::corrupt("the block's header does not fit its key"));
    room_->write(wanted.room, wanted.tokens, block->payload);
    wanted.is_there = wanted.is_pulled = true;
    return {};
}

void KvFetch::end_hop(std::string_view why) {
    const auto self = shared_from_this();
    if (!why.empty())
        log::warn("request {}: blocks of {} can't be had: {}", rid_, sources_[next_source_ - 1].url,
                  why);
    call_.reset();
    deadline_.cancel();
    ask_next_source();
}

KvFetch::Fetched KvFetch::count() const {
    Fetched fetched{.corrupt_blocks = corrupt_};
    const auto add = [&fetched](const Wanted& wanted) {
        fetched.usable_tokens += wanted.tokens;
        if (wanted.is_pulled) fetched.pulled_tokens += wanted.tokens;
    };
    std::size_t run = 0;
    while (run < wanted_.size() && wanted_[run].is_there) add(wanted_[run++]);
    if (run == held_ && tail_ && tail_->is_there) add(*tail_);
    fetched.imported_tokens = fetched.usable_tokens;
    fetched.pulled_blocks = static_cast<std::size_t>(
        std::ranges::count_if(wanted_, [](const Wanted& each) { return each.is_pulled; }));
    if (tail_ && tail_->is_pulled) ++fetched.pulled_blocks;
    return fetched;
}

engine::BlockDesk::Written KvFetch::written() const {
    engine::BlockDesk::Written written{.names = {}, .last_is_partial = tail_.has_value()};
    written.names.resize(room_->size());
    for (const Wanted& each : wanted_)
        if (each.is_pulled) written.names[each.room] = each.name;
    if (tail_ && tail_->is_pulled) written.names[tail_->room] = tail_->name;
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
    for (const port::KvSource& source : sources_) host_.releases.send(source.url, source.hold);
}

void KvFetch::cancel() {
    if (std::exchange(over_, true)) return;
    call_.reset();
    deadline_.cancel();
    room_.reset();
    found_.reset();
    release_sources();
}

}  // namespace sluice::worker
