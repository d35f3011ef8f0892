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
    if (request->phase != port::Phase::kFull) {
        return exchange->respond(error_answer(400, port::kInvalidRequest,
                                              "only \"full\" is available on this worker yet",
                                              "sluice.phase"));
    }
    if (auto refusal = refuse_by_size(*request)) return exchange->respond(*refusal);
    const std::string rid = request->rid;
    if (service.generations.contains(rid)) return exchange->respond(duplicate(rid));

    Generation::Host host{.loop = service.loop,
                          .engine = *service.engine,
                          .metrics = service.metrics,
                          .heartbeat = service.heartbeat,
                          .on_end = [&service](const std::string& id) {
                              service.generations.erase(id);
                              if (service.on_generation_end) service.on_generation_end();
                          }};
    const auto generation = std::make_shared<Generation>(std::move(host), exchange, *request);
    if (auto started = generation->start(std::move(*request)); !started) {
        const Refusal refusal = to_refusal(started.error());
        return exchange->respond(error_answer(refusal.status, refusal.error));
    }
    service.generations.emplace(rid, generation);
}

}  // namespace sluice::worker
