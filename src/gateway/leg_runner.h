#pragma once

// Carries out the legs of one request on workers of one kind, and writes what they answer to the
// client. It decides nothing: what goes wrong is told to its observer, who says what comes next.
//
// At most one leg runs at a time. Once the client has been sent anything the runner stays the
// request's to the end.

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "dispatch/request.h"
#include "gateway/pool.h"
#include "gateway/request_report.h"
#include "kv/block_key.h"
#include "port/kv_decision.h"
#include "protocol/errors.h"

namespace sluice::gateway {

/// Told of a running leg. None of these is called from inside `start`.
class LegObserver {
public:
    /// The client was sent the first byte.
    virtual void on_answer_begun() = 0;
    /// New tokens came, and what of them is text is on its way to the client.
    virtual void on_tokens(std::uint32_t tokens) = 0;
    /// A sign of life without tokens. So many of the sequence are computed, or were cached.
    virtual void on_progress(std::uint64_t computed) = 0;
    /// A prefill leg is over; its worker holds what the decode leg will ask for.
    virtual void on_handed_over() = 0;
    /// The answer is complete, and handed over to the client.
    virtual void on_answered() = 0;
    virtual void on_leg_failed(dispatch::LegFault fault, const Error& error) = 0;

protected:
    ~LegObserver() = default;
};

/// What a runner knows of the request at its end, or at any time before.
struct RunnerReport {
    std::uint64_t prompt_tokens = 0;
    bool prompt_counted = false;
    std::uint64_t cached_tokens = 0;
    std::map<std::string, std::uint64_t> cached_by_source;
    std::optional<port::KvDecision> kv_decision;
    std::uint64_t completion_tokens = 0;
    std::uint64_t reasoning_tokens = 0;
    std::uint64_t recomputed_tokens = 0;
    std::optional<std::uint64_t> seed;
    std::string system_fingerprint;
    int status = 0;  ///< HTTP status the client was sent; 0 for none.
    std::shared_ptr<const CollectedAnswer> answer;
};

class LegRunner {
public:
    enum class NoStart : std::uint8_t {
        kRefused,     ///< The worker could never take it; `fail` says why, it has the words.
        kOtherModel,  ///< The tokens that came are another model's.
    };

    virtual ~LegRunner() = default;

    /// What the request asks of a worker; its pool is the caller's to say.
    [[nodiscard]] virtual LegDemand demand() = 0;

    /// Starts a leg, or goes on after the tokens that came.
    [[nodiscard]] virtual std::expected<void, NoStart> start(const Assignment& assignment) = 0;
    /// Ends the running leg; its worker forgets the request. Does nothing without one.
    virtual void stop() = 0;
    /// Tells the worker of the last prefill leg that what it holds is needed no more. Only runners
    /// with hand-overs have anything to let go of.
    virtual void release() {}

    /// Keeps what is answered, for `report().answer`. Before the first leg.
    virtual void collect() = 0;

    /// Tells the client what the last refusal (of a leg, or kRefused) said, and returns its code.
    /// Nullopt, and nothing is told, if there was none.
    [[nodiscard]] virtual std::optional<std::string> pass_refusal_on() = 0;
    /// Ends the answer with an error, in a body or as the stream's last event.
    virtual void fail(const protocol::ApiError& error) = 0;

    [[nodiscard]] virtual RunnerReport report() const = 0;
    /// The names of its sequence's blocks, as far as they were worked out; of engines that have any.
    [[nodiscard]] virtual std::span<const kv::BlockKey> block_keys() const { return {}; }
};

}  // namespace sluice::gateway
