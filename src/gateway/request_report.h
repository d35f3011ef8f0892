#pragma once

// What is known of a request once it is over, and who is told. Records, guards and comparison plug in
// here: one plain struct, filled in one place (gateway/generation.cc).

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/latency_sketch.h"
#include "base/request_class.h"
#include "base/sampling_params.h"
#include "dispatch/request.h"
#include "gateway/inbound_request.h"
#include "port/kv_decision.h"
#include "port/server_info.h"

namespace sluice::gateway {

class Generation;

/// One attempt on one worker.
struct LegReport {
    std::string pool;
    std::string worker;  ///< Its name: "stable-0", or its URL.
    std::string phase = "full";
    /// What the worker said of itself when the leg began. Of a pass-through pool only engine, model
    /// and version are known.
    std::shared_ptr<const port::ServerInfo> versions;
    std::chrono::nanoseconds began{};  ///< After the arrival.
    std::chrono::nanoseconds ended{};
    std::uint64_t tokens = 0;  ///< New ones it gave.
    std::string fault;         ///< Why it broke; empty if it did not.
};

struct CollectedToolCall {
    std::string id;
    std::string name;
    std::string arguments;
};

/// The answer itself, for comparison; only of requests whose `collect` was called.
struct CollectedAnswer {
    std::string text;
    std::string reasoning;
    std::vector<CollectedToolCall> tool_calls;
    std::string finish_reason;        ///< Empty if there was none.
    std::vector<TokenId> output_ids;  ///< Of native pools.
    std::vector<float> logprobs;      ///< Of the output ids, where they were asked for.
    bool cut = false;                 ///< Longer than limits::kCollectedAnswerBytes.
};

struct RequestReport {
    std::string rid;         ///< Ours, unique: what `sluice ctl where` takes.
    std::string request_id;  ///< The client's, or the same as rid.
    TraceContext trace;
    std::chrono::system_clock::time_point time;  ///< Of the arrival.
    std::string tenant;
    std::string conversation;
    Endpoint endpoint = Endpoint::kChat;
    bool stream = false;
    RequestRole role = RequestRole::kAnswer;
    RequestKind kind = RequestKind::kText;
    std::string schema_digest;  ///< Of what the answer had to follow; empty if nothing was asked.
    std::string pool;           ///< That answered, or was asked last; empty if none was.
    std::string model;          ///< As the client named it.
    std::optional<std::uint64_t> seed;

    std::uint64_t prompt_tokens = 0;
    /// False where no engine counted them: `prompt_tokens` is then an estimate by length.
    bool prompt_counted = false;
    std::uint64_t cached_tokens = 0;
    std::map<std::string, std::uint64_t> cached_by_source;
    std::optional<port::KvDecision> kv_decision;
    std::uint64_t completion_tokens = 0;
    std::uint64_t reasoning_tokens = 0;
    std::uint64_t recomputed_tokens = 0;
    std::optional<RecomputeCause> recompute_cause;

    std::chrono::nanoseconds queued{};                 ///< Until it was dispatched, or its end.
    std::optional<std::chrono::nanoseconds> ttft;      ///< Since the arrival.
    LatencySketch tbt;                                 ///< Gaps between tokens.
    std::optional<std::chrono::nanoseconds> mean_gap;  ///< Of them; absent without any.
    std::chrono::nanoseconds duration{};
    Outcome outcome = Outcome::kOk;
    std::string error_code;  ///< As the client was told: "worker_lost"; empty if it was not.
    int status = 0;          ///< HTTP status; 0 if nothing was sent.
    std::uint32_t retries = 0;
    std::uint32_t resumes = 0;

    std::string system_fingerprint;  ///< Digest of the version manifest of the first leg.
    std::vector<LegReport> legs;
    std::shared_ptr<const CollectedAnswer> answer;
};

/// Told of every request. Loop thread; not to block.
class RequestObserver {
public:
    virtual ~RequestObserver() = default;
    /// Accepted: from now on it lives. `generation.where()` tells its state at any time.
    virtual void on_arrival(Generation& /*generation*/) {}
    /// A first leg is about to start on `generation.pool()`: the moment to copy the request, and to
    /// call `generation.collect()` if its answer will be compared.
    virtual void on_dispatch(Generation& /*generation*/) {}
    /// Refused before it lived: none of the other calls is made for it.
    virtual void on_refused(const RequestReport& /*report*/) {}
    /// It is over. The last call for it.
    virtual void on_done(const Generation& /*generation*/, const RequestReport& /*report*/) {}
    /// No request is left, and the gateway goes: the moment to let go of its workers.
    virtual void on_gateway_end() {}
};

}  // namespace sluice::gateway
