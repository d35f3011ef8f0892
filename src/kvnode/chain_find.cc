#include "kvnode/chain_find.h"

#include <algorithm>
#include <utility>

#include "kv/placement.h"

namespace sluice::kvnode {

bool ChainFind::start() {
    for (std::size_t block = 0; block < chain_->keys.size(); ++block) ask({.block = block});
    return open_ > 0;
}

void ChainFind::finish() { std::exchange(on_found_, nullptr)(std::move(found_)); }

void ChainFind::ask(Question question) {
    const Route& route = *routes_[question.block / kv::kExtentBlocks];
    for (; question.member < route.members.size(); ++question.member, question.order = 0) {
        const auto& member = route.members[question.member];
        const auto retention = lookup_order(chain_->retention).at(question.order);
        std::string name =
            kv::to_wire(name_of(*chain_, {.index = question.block, .retention = retention}));
        if (!member->up(Lane::kLookUp, name)) {
            ++member->stats.refused;
            continue;
        }
        ++open_;
        return member->call(
            Lane::kLookUp, {.words = {"EXISTS", std::move(name)}},
            route.deadline(question.member, deadline_),
            [self = shared_from_this(), question](const Result<kv::RespReply>& reply) {
                self->answered(question, reply);
            });
    }
}

void ChainFind::answered(const Question& question, const Result<kv::RespReply>& reply) {
    const Route& route = *routes_[question.block / kv::kExtentBlocks];
    KvMember& member = *route.members[question.member];
    Question next = question;
    if (reply && reply->type == kv::RespType::kInteger) {
        measure(member);
        const auto order = lookup_order(chain_->retention);
        if (reply->integer > 0) {
            found_[question.block] = order.at(question.order);
        } else if (question.order + 1 < order.size()) {
            ++next.order;
            ask(next);
        } else {
            ask({.block = question.block, .member = question.member + 1});
        }
    } else {
        if (reply) {
            ++member.stats.errors;
        } else {
            count_failure(member.stats, reply.error());
        }
        ask({.block = question.block, .member = question.member + 1});
    }
    if (--open_ == 0) finish();
}

void ChainFind::measure(KvMember& member) {
    if (std::ranges::find(measured_, &member) != measured_.end()) return;
    measured_.push_back(&member);
    member.stats.add_round_trip(std::chrono::steady_clock::now() - started_);
}

}  // namespace sluice::kvnode
