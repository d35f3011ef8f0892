#include "worker/kv_pull_answer.h"

#include <utility>

#include "kv/block_name.h"
#include "kv/block_value.h"

namespace sluice::worker {
namespace {

/// A value is made when less than this of the ones before it has yet to leave.
constexpr std::size_t kAhead = 256 * 1024;
constexpr std::chrono::milliseconds kRetry{1};

}  // namespace

KvPullAnswer::KvPullAnswer(Host host, std::shared_ptr<net::HttpExchange> exchange)
    : host_(std::move(host)), exchange_(std::move(exchange)) {}

void KvPullAnswer::start(const port::KvPullRequest& request,
                         const std::shared_ptr<const engine::HeldSequence>& held) {
    exchange_->on_client_gone([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->end();
    });
    tenant_ = request.tenant;
    blocks_.resize(request.keys.size());
    for (std::size_t i = 0; i < request.keys.size(); ++i) wanted_.emplace(request.keys[i], i);
    if (held) add_held(*held);
    std::vector<kv::BlockKey> elsewhere = missing();
    if (elsewhere.empty()) return begin();
    host_.engine.with_blocks([weak = weak_from_this(), loop = &host_.loop,
                              keys = std::move(elsewhere)](engine::BlockDesk& desk) {
        auto found = std::make_shared<engine::BlockDesk::Found>(desk.find(keys));
        loop->post([weak, found] {
            const auto self = weak.lock();
            if (!self || !self->exchange_) return;
            self->add_found(*found);
            self->add_from_memory();
            self->begin();
        });
    });
}

void KvPullAnswer::add(Block block) {
    const auto place = wanted_.find(block.name.key);
    if (place != wanted_.end()) blocks_[place->second] = std::move(block);
}

void KvPullAnswer::add_held(const engine::HeldSequence& held) {
    for (std::size_t i = 0; i < held.blocks->size(); ++i) {
        add({.name = held.name_of(i),
             .hold = held.blocks,
             .index = i,
             .tokens = held.tokens_of(i, engine::Engine::kBlockTokens)});
    }
}

void KvPullAnswer::add_found(const engine::BlockDesk::Found& found) {
    for (std::size_t i = 0; i < found.names.size(); ++i) {
        add({.name = found.names[i],
             .hold = found.blocks,
             .index = i,
             .tokens = engine::Engine::kBlockTokens});
    }
}

// Only the names: what a slow reader has yet to be sent would otherwise outlive its eviction, beyond the
// tier's bound.
void KvPullAnswer::add_from_memory() {
    if (host_.dram == nullptr || tenant_.empty()) return;
    const kv::WallTime now = std::chrono::system_clock::now();
    for (const kv::BlockKey& key : missing()) {
        for (const Retention retention : {Retention::kAgent, Retention::kChat}) {
            std::string name = kv::to_wire({.tenant = tenant_, .retention = retention, .key = key});
            if (!host_.dram->contains(name, now)) continue;
            add({.name = {.key = key}, .hold = nullptr, .memory_name = std::move(name)});
            break;
        }
    }
}

std::vector<kv::BlockKey> KvPullAnswer::missing() const {
    std::vector<kv::BlockKey> keys;
    for (const auto& [key, place] : wanted_)
        if (!blocks_[place]) keys.push_back(key);
    return keys;
}

void KvPullAnswer::begin() {
    std::erase_if(blocks_, [](const std::optional<Block>& block) { return !block; });
    exchange_->begin_stream(200, {{"Content-Type", "application/octet-stream"}});
    if (!host_.engine.options().faults.pull_hang) pump();
}

void KvPullAnswer::pump() {
    const FaultPoints& faults = host_.engine.options().faults;
    while (next_ < blocks_.size()) {
        if (exchange_->backlog_bytes() > kAhead) {
            retry_ = host_.loop.call_after(kRetry, [this] { pump(); });
            return;
        }
        std::string value = value_of(*blocks_[next_]);
        if (value.empty()) {
            ++next_;
            continue;
        }
        if (faults.pull_flip) value[value.size() / 2] ^= 1;
        if (faults.pull_cut && 2 * next_ + 1 >= blocks_.size()) return cut(std::move(value));
        blocks_[next_++].reset();
        exchange_->write(std::move(value));
    }
    exchange_->end_stream();
    end();
}

std::string KvPullAnswer::value_of(const Block& block) const {
    if (!block.memory_name.empty()) {
        const kv::SharedBytes value =
            host_.dram->get(block.memory_name, std::chrono::system_clock::now());
        return std::string(value.bytes);
    }
    const kv::BlockHeader header{.key = block.name.key,
                                 .parent = block.name.parent,
                                 .component = host_.engine.key_root().component,
                                 .tokens = static_cast<std::uint32_t>(block.tokens),
                                 .producer = host_.producer,
                                 .payload_checksum = {}};
    return kv::encode_block(
        header, block.hold->bytes(block.tokens),
        [&block](std::span<std::byte> out) { block.hold->read(block.index, block.tokens, out); });
}

void KvPullAnswer::cut(std::string value) {
    value.resize(value.size() / 2);
    exchange_->write(std::move(value));
    // Once it has left: what is cut at once may never be seen.
    retry_ = host_.loop.call_after(kRetry, [this] {
        exchange_->abort();
        end();
    });
}

void KvPullAnswer::end() {
    const auto self = shared_from_this();  // `on_end` lets go of it.
    retry_.cancel();
    exchange_ = nullptr;
    blocks_.clear();
    host_.on_end(this);
}

}  // namespace sluice::worker
