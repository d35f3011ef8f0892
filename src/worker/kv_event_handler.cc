#include "worker/kv_event_handler.h"

#include <fmt/format.h>

#include "kvnode/kv_event_query.h"
#include "worker/answers.h"

namespace sluice::worker {
void handle_kv_events(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    if (service.ranks.empty()) {
        return exchange->respond(error_answer(503, port::kNotReady, "the model is still loading"));
    }
    const auto query = kvnode::parse_kv_event_query(exchange->request().query);
    if (!query) {
        return exchange->respond(error_answer(400, port::kInvalidRequest, query.error().message(),
                                              query.error().place()));
    }
    if (query->rank >= service.ranks.size()) {
        return exchange->respond(error_answer(
            400, port::kInvalidRequest,
            fmt::format("this worker has {} ranks, counted from 0", service.ranks.size()), "rank"));
    }
    service.ranks[query->rank]->feed->answer(*query, exchange);
}

}  // namespace sluice::worker
