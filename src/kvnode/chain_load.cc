#include "kvnode/chain_load.h"

#include <fmt/format.h>

#include <utility>

#include "kv/block_value.h"
#include "kvnode/block_put.h"

namespace sluice::kvnode {

bool ChainLoad::start() {
    for (std::size_t at = 0; at < blocks_.size(); ++at) ask({.at = at});
    return open_ > 0;
}

void ChainLoad::finish() {
    if (wanted_ == nullptr) return;
    wanted_.reset();
    for (const auto& [member, received] : received_)
        member->stats.add_load(received.bytes, received.last - started_);
    std::exchange(on_done_, nullptr)();
}

void ChainLoad::cancel() { wanted_.reset(); }

void ChainLoad::ask(Question question) {
    const Route& route = *routes_[question.at];
    for (; question.member < route.members.size(); ++question.member) {
        const auto& member = route.members[question.member];
        std::string key = name(question);
        if (!member->up(Lane::kLoad, key)) {
            ++member->stats.refused;
            continue;
        }
        ++open_;
        return member->call(
            Lane::kLoad, {.words = {"GET", std::move(key)}},
            route.deadline(question.member, deadline_),
            [self = shared_from_this(), question](Result<kv::RespReply> reply) {
                self->answered(question, std::move(reply));
            },
            std::weak_ptr<const void>(wanted_));
    }
}

void ChainLoad::answered(Question question, Result<kv::RespReply> reply) {
    if (wanted_ == nullptr) return;
    KvMember& member = *routes_[question.at]->members[question.member];
    bool there = false;
    if (!reply) {
        count_failure(member.stats, reply.error());
    } else if (reply->is_null()) {
        ++member.stats.misses;
        if (question.member < 64) question.missed |= std::uint64_t{1} << question.member;
    } else if (reply->type == kv::RespType::kText) {
        there = take(question, name(question), reply->text.take_shared());
    } else {
        ++member.stats.errors;
    }
    if (!there && wanted_ != nullptr) {
        ++question.member;
        ask(question);
    }
    if (--open_ == 0) finish();
}

bool ChainLoad::take(const Question& question, const std::string& name,
                     const kv::SharedBytes& value) {
    KvMember& member = *routes_[question.at]->members[question.member];
    const FoundBlock& wanted = blocks_[question.at];
    const auto block = kv::decode_block(value.bytes);
    if (!block && block.error().code() == ErrorCode::kUnsupported) {
        ++member.stats.misses;  // Of another version: good for somebody else.
        return false;
    }
    const bool other_block = block && block->header.key != chain_->keys[wanted.index];
    if (!block || other_block) {
        reject(member, name, other_block);
        return false;
    }
    ++member.stats.hits;
    member.stats.bytes_read += value.bytes.size();
    Received& received = received_[&member];
    received.bytes += value.bytes.size();
    received.last = std::chrono::steady_clock::now();
    pull(question, name, value);
    on_value_(wanted.index, value);
    return true;
}

void ChainLoad::reject(KvMember& member, const std::string& name, bool other_block) {
    ++member.stats.corrupt;
    member.call(Lane::kStore, {.words = {"DEL", name}}, store_deadline(), [](const auto&) {});
    // Perhaps it lay there under the wrong name; perhaps answers are one off, and those that follow
    // are wrong as well.
    if (other_block)
        member.break_off(Lane::kLoad, name,
                         fmt::format("{} answered with another block", member.stats.where));
}

void ChainLoad::pull(const Question& question, const std::string& name,
                     const kv::SharedBytes& value) {
    const Route& route = *routes_[question.at];
    const auto life = times_.of(blocks_[question.at].retention);
    for (std::size_t at = 0; at < std::min(question.member, route.owners); ++at) {
        if ((question.missed >> at & 1) == 0) continue;
        const auto& owner = route.members[at];
        owner->call(Lane::kStore, set_request(name, value, life), store_deadline(),
                    [owner, bytes = value.bytes.size()](const Result<kv::RespReply>& reply) {
                        if (!reply) return count_failure(owner->stats, reply.error());
                        if (reply->type != kv::RespType::kStatus) return;
                        ++owner->stats.pulled;
                        owner->stats.bytes_written += bytes;
                    });
    }
}

}  // namespace sluice::kvnode
