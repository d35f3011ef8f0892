#include "kvnode/resp_node.h"

#include <utility>

namespace sluice::kvnode {
namespace {

/// Requests under way. Look-ups of the longest chain are few trips; of values only so many come that
/// the connection is never idle, so that what nobody wants any more has not been asked for.
constexpr std::array<std::size_t, kLanes> kWindows{4'096, 16, 16};

}  // namespace

RespNode::RespNode(net::EventLoop& loop, const MemberOptions& options) : address_(options.address) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        clients_.at(lane) = RespClient::make(loop, {.address = options.address,
                                                    .trust = options.trust,
                                                    .window = kWindows.at(lane),
                                                    .connect_time = options.connect_time,
                                                    .probe_pause = options.probe_pause});
    }
    stats.where = options.address.name();
}

void RespNode::call(Lane lane, RespRequest request, Deadline deadline, RespClient::OnReply on_reply,
                    WantedBy wanted_by) {
    client(lane).call(std::move(request), deadline, std::move(on_reply), std::move(wanted_by));
}

bool RespNode::up(Lane lane, const std::string& /*name*/) const { return up(lane); }

void RespNode::break_off(Lane lane, const std::string& /*name*/, const std::string& why) {
    client(lane).break_off(why);
}

void RespNode::close_all() {
    for (const auto& client : clients_) client->close();
}

}  // namespace sluice::kvnode
