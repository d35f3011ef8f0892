#include "worker/kv_handlers.h"

#include <algorithm>

#include "port/kv_pull.h"
#include "worker/answers.h"
#include "worker/kv_pull_answer.h"
#include "worker/translation.h"

namespace sluice::worker {

void handle_kv_pull(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    if (service.ranks.empty()) {
        return exchange->respond(error_answer(503, port::kNotReady, "the model is still loading"));
    }
    const auto request = port::parse_kv_pull_request(exchange->request().body);
    if (!request) {
        return exchange->respond(error_answer(400, port::kInvalidRequest, request.error().message(),
                                              request.error().place()));
    }
    const auto hold = service.kv.holds.find(request->hold);
    const std::size_t number = service.kv.holds.rank_of(request->hold);
    Rank& rank = *service.ranks[std::min(number, service.ranks.size() - 1)];
    const auto answer = std::make_shared<KvPullAnswer>(
        KvPullAnswer::Host{.loop = service.loop,
                           .engine = *rank.engine,
                           .dram = service.kv.cache.dram(),
                           .producer = version_digest(service.about),
                           .on_end =
                               [&service](const KvPullAnswer* ended) {
                                   service.kv.pulls.erase(ended);
                                   if (service.on_work_end) service.on_work_end();
                               }},
        exchange);
    service.kv.pulls.emplace(answer.get(), answer);
    answer->start(*request, hold ? hold->sequence : nullptr);
}

net::HttpResponse handle_kv_release(Service& service, const net::HttpRequest& request) {
    const auto release = port::parse_kv_release_request(request.body);
    if (!release) {
        return error_answer(400, port::kInvalidRequest, release.error().message(),
                            release.error().place());
    }
    service.kv.holds.release(release->hold);
    return net::HttpResponse::json(200, "{}");
}

}  // namespace sluice::worker
