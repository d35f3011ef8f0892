#include "gateway/kv_bounds_push.h"

#include <utility>

#include "base/log.h"

namespace sluice::gateway {

KvBoundsPush::KvBoundsPush(net::EventLoop& loop, net::HttpClient& client,
                           std::function<std::vector<KvHolder>()> holders,
                           const port::KvBoundsOrder& bounds, std::chrono::milliseconds pace)
    : loop_(loop),
      client_(client),
      holders_(std::move(holders)),
      order_(to_json(bounds)),
      pace_(pace) {
    next_ = loop_.call_after(std::chrono::milliseconds(0), [this] { tell(); });
}

void KvBoundsPush::tell() {
    survey_ = std::make_unique<KvSurvey>(
        loop_, client_, holders_(),
        KvQuestion{.method = "POST", .path = "/kv/bounds", .body = order_},
        [this](const std::vector<KvAnswer>& answers) {
            // Whoever can't be told now is told the next time.
            for (const KvAnswer& answer : answers)
                if (!answer.body && !answer.holder.is_foreign())
                    log::debug("{} was not told what tenants may take: {}", answer.holder.url,
                               answer.body.error().message());
            next_ = loop_.call_after(pace_, [this] { tell(); });
        });
}

}  // namespace sluice::gateway
