#pragma once

// A pool: workers of one kind that serve one model, interchangeable for a request. What differs
// between kinds of engines is behind this interface and LegRunner; everything else about a request is
// the same for all.
//
// Belongs to the event loop's thread, except where it says otherwise.

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sampling_params.h"
#include "dispatch/request.h"
#include "gateway/inbound_request.h"
#include "kv/key_chain.h"
#include "port/load_report.h"
#include "port/server_info.h"
#include "protocol/errors.h"
#include "routing/registry.h"

namespace sluice::gateway {

class BlockChain;
class LegRunner;
class LegObserver;
class Pool;
struct PreparedRequest;

/// What a leg asks of a worker.
struct LegDemand : routing::Demand {
    /// Names the blocks of `prompt` and `answer` for pools whose engines keep them; else nullptr.
    BlockChain* chain = nullptr;
    std::span<const TokenId> prompt{};
    std::span<const TokenId> answer{};
};

/// Another worker that has the first blocks of a request's sequence.
struct Lender {
    std::string url;
    std::uint32_t blocks = 0;
};

/// A worker chosen for a request, counted for as long as this lives.
struct Assignment {
    Pool* pool = nullptr;
    std::string url;
    std::string worker;  ///< Its name.
    std::shared_ptr<const port::ServerInfo> info;
    routing::Lease lease;
    routing::LegPhase leg = routing::LegPhase::kFull;  ///< What it is to do.
    std::optional<std::uint32_t> rank;                 ///< Of a worker that has several.
    std::optional<Lender> lender;                      ///< Of what the worker lacks.
    double work = 0.0;                                 ///< routing::Pick::work
};

/// For `sluice ctl status`.
struct WorkerView {
    std::string name;
    std::string url;
    std::string_view phase = "full";  ///< What it is for.
    std::string
        state;  ///< "loading", "ready", "stopping", "stalled" as it says; "lost" without an answer.
    std::optional<port::LoadReport> report;  ///< The last one, of engines that give any.
    std::optional<std::chrono::milliseconds> report_age;
    std::shared_ptr<const port::ServerInfo> versions;
    std::optional<std::uint32_t> leases{};  ///< Requests that this gateway has there.
    std::optional<bool> events{};           ///< Whether it says what its cache holds.
    std::string reason{};  ///< Why it is lost; empty if it is not, or nothing is known.
};

/// A request made ready for one kind of pool; what is in it is that kind's.
using Prepared = std::expected<std::shared_ptr<const PreparedRequest>, protocol::ApiError>;

class Pool {
public:
    virtual ~Pool() = default;

    [[nodiscard]] virtual const std::string& name() const = 0;
    [[nodiscard]] virtual const std::string& engine() const = 0;  ///< "native", "openai", ...
    /// The name clients use; empty if any will do.
    [[nodiscard]] virtual const std::string& model() const = 0;
    [[nodiscard]] virtual routing::PoolIndex index() const = 0;
    [[nodiscard]] virtual dispatch::Rules rules() const = 0;

    /// How many requests its workers keep busy with, as far as they have said so; nullopt if they
    /// take as many as come.
    [[nodiscard]] virtual std::optional<std::size_t> capacity() const { return std::nullopt; }

    /// Begins to watch the workers.
    virtual void start() = 0;

    /// Pure and thread-safe: from the body to what the pool's workers take.
    [[nodiscard]] virtual Prepared prepare(const InboundRequest& request) const = 0;
    /// Whether `prepare` takes long enough to be done beside the event loop.
    [[nodiscard]] virtual bool slow_to_prepare(const InboundRequest& request) const = 0;
    /// What one pool with this recipe has prepared fits every other; nullptr fits none.
    [[nodiscard]] virtual const void* recipe() const = 0;

    /// `prepared` and `request` outlive the runner, `observer` too.
    [[nodiscard]] virtual std::unique_ptr<LegRunner> make_runner(
        const InboundRequest& request, std::shared_ptr<const PreparedRequest> prepared,
        LegObserver& observer) = 0;

    /// `demand` is for its own pool, whatever it says.
    [[nodiscard]] virtual std::expected<Assignment, routing::NoPick> pick(
        LegDemand demand, const routing::Tried& tried) = 0;
    /// How a leg on this worker, that began then, went, apart from what was the client's doing.
    virtual void report_success(routing::WorkerIndex worker) = 0;
    virtual void report_first_token(routing::WorkerIndex, double /*work*/, double /*seconds*/) {}
    virtual void report_fault(routing::WorkerIndex worker, dispatch::LegFault fault,
                              dispatch::Time began) = 0;

    [[nodiscard]] virtual std::vector<WorkerView> workers() const = 0;

    /// The names of the full blocks of a chat's prompt, given as the body of its request. Error
    /// `kUnsupported` where engines keep no blocks that we could name; else what is wrong with the chat.
    [[nodiscard]] virtual Result<std::vector<kv::BlockKey>> name_prompt(
        std::string_view /*chat*/, const kv::Salt& /*salt*/) const {
        return std::unexpected(Error::unsupported("the engines of pool " + name() +
                                                  " keep no blocks that could be named here"));
    }
};

}  // namespace sluice::gateway
