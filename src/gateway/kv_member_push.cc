#include "gateway/kv_member_push.h"

#include "base/limits.h"
#include "base/log.h"
#include "port/kv_orders.h"

namespace sluice::gateway {
namespace {

constexpr std::chrono::seconds kPatience{2};

port::KvNodesOrder order_of(const KvMembers& members) {
    port::KvNodesOrder order{.epoch = members.epoch(), .nodes = {}};
    for (const KvNode& node : members.nodes()) {
        auto url = url_with_password(node);
        // The others are of use without it.
        if (!url) log::error("a cache node is left out: {}", url.error().to_string());
        if (url) order.nodes.push_back(std::move(*url));
    }
    return order;
}

}  // namespace

void KvMemberPush::on_report(const std::string& url, std::uint64_t epoch) {
    members_.saw(epoch);
    if (epoch < members_.epoch()) return tell(url, false);
    if (!refused_by_.contains(url)) return;
    // Only now is it known what there is to overtake.
    if (epoch > members_.epoch()) return overtake();
    refused_by_.erase(url);
}

void KvMemberPush::tell(const std::vector<std::string>& urls) {
    told_ = {urls.begin(), urls.end()};
    refused_by_.clear();
    for (const std::string& url : told_) tell(url, true);
}

void KvMemberPush::overtake() {
    if (const auto done = members_.overtake(); !done)
        return log::error("the list of cache nodes can't be kept: {}", done.error().to_string());
    tell(std::vector(told_.begin(), told_.end()));
}

void KvMemberPush::tell(const std::string& url, bool is_news) {
    const auto known = tellings_.find(url);
    if (known != tellings_.end() && known->second.epoch == members_.epoch()) return;
    // What is on its way still is of an older epoch: it is taken back.
    tellings_[url] = {.epoch = members_.epoch(),
                      .is_news = is_news,
                      .call = std::make_unique<discovery::CollectedCall>(
                          loop_, client_,
                          net::ClientRequest{.method = "POST",
                                             .url = url + "/kv/nodes",
                                             .headers = {{"Content-Type", "application/json"}},
                                             .body = to_json(order_of(members_))},
                          limits::kPortTextBytes, kPatience,
                          [this, url](const auto& answer) { on_answer(url, answer); })};
}

void KvMemberPush::on_answer(const std::string& url,
                             const Result<discovery::CollectedAnswer>& answer) {
    const auto telling = tellings_.extract(url);
    if (!answer) {
        log::warn("worker {} was not told of the cache nodes: {}", url, answer.error().message());
    } else if (answer->status == 409 && telling.mapped().is_news) {
        if (telling.mapped().epoch == members_.epoch()) refused_by_.insert(url);
    } else if (answer->status != 200) {
        log::warn("worker {} does not take the cache nodes of epoch {}: status {}", url,
                  telling.mapped().epoch, answer->status);
    }
}

}  // namespace sluice::gateway
