#include "worker/generate_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "port/generate.h"
#include "worker/answers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

std::optional<net::HttpResponse> refuse_by_state(port::EngineState state) {
    switch (state) {
        case port::EngineState::kReady: return std::nullopt;
        case port::EngineState::kLoading:
            return error_answer(503, port::kNotReady, "the model is still loading");
        case port::EngineState::kStopping:
            return error_answer(503, port::kNotReady, "the worker is stopping");
        case port::EngineState::kStalled:
            return error_answer(503, port::kNotReady, "the engine makes no step");
    }
    return std::nullopt;
}

/// The log-probabilities of the input go out in one event, whose size is bounded.
std::optional<net::HttpResponse> refuse_by_size(const port::GenerateRequest& request) {
    if (request.logprob_start_len < 0) return std::nullopt;
    constexpr std::uint64_t kEntryBytes = 24;  // "[-12.345678,129279]," and some room
    constexpr std::uint64_t kMost = limits::kSseEventBytes / kEntryBytes;
    const std::uint64_t positions =
        request.input_ids.size() - static_cast<std::uint64_t>(request.logprob_start_len);
    const std::uint64_t entries = positions * (1 + std::uint64_t{request.top_logprobs_num});
    if (entries <= kMost) return std::nullopt;
    return error_answer(400, port::kInvalidRequest,
                        fmt::format("{} log-probabilities of the input were asked for, but at most "
                                    "{} are given",
                                    entries, kMost),
                        "logprob_start_len");
}

/// The one asked for, or the one with the fewest requests; nothing if there is none of this number.
std::optional<std::size_t> choose_rank(const Service& service,
                                       const port::GenerateRequest& request) {
    if (request.dp_rank) {
        if (*request.dp_rank >= service.ranks.size()) return std::nullopt;
        return *request.dp_rank;
    }
    const auto least =
        std::ranges::min_element(service.ranks, {}, [](const auto& rank) { return rank->live; });
    return static_cast<std::size_t>(least - service.ranks.begin());
}

net::HttpResponse no_such_rank(std::size_t ranks) {
    return error_answer(400, port::kInvalidRequest,
                        fmt::format("this worker has {} ranks, counted from 0", ranks),
                        "sluice.dp_rank");
}

net::HttpResponse duplicate(const std::string& rid) {
    return error_answer(409, port::kDuplicateRequest,
                        fmt::format("a request with the id {} is running", rid), "rid");
}

}  // namespace

void handle_generate(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    if (auto refusal = refuse_by_state(service.state_now())) return exchange->respond(*refusal);
    auto request = port::parse_generate_request(exchange->request().body);
    if (!request) {
        const Error& error = request.error();
        return exchange->respond(
            error_answer(400, port::kInvalidRequest, error.message(), error.place()));
    }
    if (auto refusal = refuse_by_size(*request)) return exchange->respond(*refusal);
    const std::string rid = request->rid;
    if (service.generations.contains(rid)) return exchange->respond(duplicate(rid));

    const auto number = choose_rank(service, *request);
    if (!number) return exchange->respond(no_such_rank(service.ranks.size()));
    Rank& rank = *service.ranks[*number];

    Generation::Host host{.loop = service.loop,
                          .engine = *rank.engine,
                          .rank = *number,
                          .kv = service.kv,
                          .publisher = service.publisher,
                          .producer = version_digest(service.about),
                          .metrics = service.metrics,
                          .heartbeat = service.heartbeat,
                          .on_end = [&service, &rank](const std::string& id) {
                              if (service.generations.erase(id) > 0) --rank.live;
                              if (service.on_work_end) service.on_work_end();
                          }};
    const auto generation = std::make_shared<Generation>(std::move(host), exchange, *request);
    if (auto started = generation->start(std::move(*request)); !started) {
        const Refusal refusal = to_refusal(started.error());
        return exchange->respond(error_answer(refusal.status, refusal.error));
    }
    service.generations.emplace(rid, generation);
    ++rank.live;
}

}  // namespace sluice::worker
