#pragma once

// Which pool answers a request. The traffic plan plugs in here.

#include <optional>
#include <string>
#include <string_view>

#include "base/request_class.h"

namespace sluice::gateway {

class Pool;
class PoolSet;
struct InboundRequest;

class Steering {
public:
    virtual ~Steering() = default;

    /// The pool that answers, or nullptr if none may. Asked as a request arrives, and again each time
    /// a worker is sought for it, so that a change of the plan holds for what waits, too. `current` is
    /// the pool whose tokens the client has already, for an answer that lost its worker in the middle:
    /// unless the plan has closed that pool, it should go on there. Not called for pinned requests and
    /// copies.
    [[nodiscard]] virtual Pool* choose(const InboundRequest& request, Pool* current) = 0;

    /// Whether the plan's pools serve a model of this name; an empty name is the plan's own choice.
    [[nodiscard]] virtual bool serves(std::string_view model) const = 0;

    /// Whether answers are sent to `pool` now: then its room is the service's.
    [[nodiscard]] virtual bool answers(const Pool& pool) const = 0;

    /// Why a request that asks for `pool` by name must not go there; nullopt if it may.
    [[nodiscard]] virtual std::optional<std::string> refuse_pin(const Pool& pool) const = 0;
};

}  // namespace sluice::gateway
