#include "kvnode/block_put.h"

#include <algorithm>
#include <utility>

#include "kv/block_value.h"

namespace sluice::kvnode {
namespace {

constexpr std::chrono::seconds kStoreTime{30};
/// A value that breaks again and again is not written for ever.
constexpr int kReplacements = 2;

/// Of SET: asking again brings the same, other than while a server loads, fails over or moves slots.
bool is_refusal(std::string_view error) {
    return error.starts_with("OOM ") || error.starts_with("ERR ");
}

std::string seconds_of(std::chrono::milliseconds life) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(life);
    return std::to_string(std::max<std::int64_t>(1, seconds.count()));
}

}  // namespace

Deadline store_deadline() { return std::chrono::steady_clock::now() + kStoreTime; }

RespRequest set_request(const std::string& name, const kv::SharedBytes& value,
                        std::chrono::milliseconds life) {
    return {.words = {"SET", name, "NX", "EX", seconds_of(life)}, .value = value};
}

bool BlockPut::start() {
    for (std::size_t owner = 0; owner < route_->owners; ++owner) {
        KvMember& member = *route_->members[owner];
        if (!member.up(Lane::kStore, name_)) {
            ++member.stats.refused;
            continue;
        }
        ++open_;
        set(owner);
    }
    return open_ > 0;
}

void BlockPut::finish() { std::exchange(on_stored_, nullptr)(outcome_.value_or(Stored::kFailed)); }

void BlockPut::ask(std::size_t owner, RespRequest request, Answer answer) {
    route_->members[owner]->call(
        Lane::kStore, std::move(request), deadline_,
        [self = shared_from_this(), owner, answer](const Result<kv::RespReply>& reply) {
            StoreStats& stats = self->route_->members[owner]->stats;
            if (reply && !reply->is_error()) return ((*self).*answer)(owner, *reply);
            if (reply) {
                ++stats.errors;
            } else {
                count_failure(stats, reply.error());
            }
            const bool refused =
                reply && answer == &BlockPut::set_answered && is_refusal(reply->text.view());
            self->ended(owner, refused ? Stored::kRefused : Stored::kFailed);
        });
}

void BlockPut::set(std::size_t owner) {
    ask(owner, set_request(name_, value_, life_), &BlockPut::set_answered);
}

void BlockPut::set_answered(std::size_t owner, const kv::RespReply& reply) {
    if (!reply.is_null()) return ended(owner, Stored::kStored);
    ask(owner, {.words = {"GETRANGE", name_, "0", std::to_string(kv::kBlockStartBytes - 1)}},
        &BlockPut::start_read);
}

void BlockPut::start_read(std::size_t owner, const kv::RespReply& reply) {
    const auto there = kv::read_block_start(reply.text.view());
    if (!there && there.error().code() == ErrorCode::kUnsupported)
        return ended(owner, Stored::kRefused);  // Another version's, and good for somebody else.
    if (!there) return replace(owner);
    const auto ours = kv::read_block_start(value_.bytes);
    if (!ours || there->payload_checksum != ours->payload_checksum)
        return ask(owner, {.words = {"GET", name_}}, &BlockPut::whole_read);
    route_->members[owner]->call(Lane::kStore, {.words = {"EXPIRE", name_, seconds_of(life_)}},
                                 deadline_, [](const auto&) {});
    ended(owner, Stored::kWasThere);
}

void BlockPut::whole_read(std::size_t owner, const kv::RespReply& reply) {
    const auto there = kv::decode_block(reply.text.view());
    const auto ours = kv::read_block_start(value_.bytes);
    if (!there || !ours || there->header.key != ours->key) return replace(owner);
    const bool same = there->header.payload_checksum == ours->payload_checksum;
    ended(owner, same ? Stored::kWasThere : Stored::kDiffers);
}

void BlockPut::replace(std::size_t owner) {
    ++route_->members[owner]->stats.corrupt;
    if (++replacements_ > kReplacements) return ended(owner, Stored::kFailed);
    ask(owner, {.words = {"DEL", name_}}, &BlockPut::replaced);
}

void BlockPut::replaced(std::size_t owner, const kv::RespReply& /*reply*/) { set(owner); }

void BlockPut::ended(std::size_t owner, Stored how) {
    StoreStats& stats = route_->members[owner]->stats;
    if (how == Stored::kStored) {
        ++stats.stored;
        stats.bytes_written += value_.bytes.size();
    }
    if (how == Stored::kDiffers) ++stats.differs;
    const auto rank = [](Stored stored) {
        switch (stored) {
            case Stored::kDiffers: return 4;
            case Stored::kStored: return 3;
            case Stored::kWasThere: return 2;
            case Stored::kFailed: return 1;
            case Stored::kRefused: break;
        }
        return 0;
    };
    if (!outcome_ || rank(how) > rank(*outcome_)) outcome_ = how;
    if (--open_ == 0) finish();
}

}  // namespace sluice::kvnode
