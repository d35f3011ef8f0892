#pragma once

// A request as it came in: the exchange that will carry its answer, and what its head and outline say.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/request_class.h"
#include "base/retention.h"
#include "base/trace_context.h"
#include "gateway/patient_exchange.h"
#include "net/http_server.h"
#include "protocol/request_outline.h"

namespace sluice::gateway {

enum class Endpoint : std::uint8_t { kChat, kCompletions };

struct InboundRequest {
    Endpoint endpoint = Endpoint::kChat;
    std::shared_ptr<net::HttpExchange> exchange;
    std::shared_ptr<PatientExchange> patient;  ///< The same one, while its client waits; or null.
    RequestRole role = RequestRole::kAnswer;
    std::string request_id;  ///< The client's name for it, or our own.
    std::chrono::milliseconds deadline{};
    TraceContext trace;       ///< Its own span is the parent of what the workers do.
    std::string pinned_pool;  ///< x-sluice-pool, where the client may choose; else empty.
    protocol::RequestOutline outline;
    std::string tenant;         ///< Known once it is admitted.
    std::int32_t priority = 0;  ///< For the engine; higher runs first.
    std::string salt;           ///< Keeps its prefix apart from other tenants'.
    /// Keeps what is its conversation's own apart from other users' or sessions'; or empty.
    std::string own_salt;
    std::optional<Retention> retention_asked{};  ///< x-sluice-class
    Retention retention = Retention::kChat;      ///< Of what it leaves in the caches.
    /// Of a copy: the seed that the original's answer was drawn with.
    std::optional<std::uint64_t> seed{};
    std::string conversation;  ///< protocol::conversation_key

    [[nodiscard]] const std::string& body() const { return exchange->request().body; }
};

}  // namespace sluice::gateway
