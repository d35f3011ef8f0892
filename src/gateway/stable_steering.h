#pragma once

// The plan without a plan: one pool answers everything.

#include "gateway/pool.h"
#include "gateway/steering.h"

namespace sluice::gateway {

class StableSteering final : public Steering {
public:
    explicit StableSteering(Pool& stable) : stable_(stable) {}

    [[nodiscard]] Pool* choose(const InboundRequest&, Pool*) override { return &stable_; }
    [[nodiscard]] bool serves(std::string_view model) const override {
        return model.empty() || stable_.model().empty() || model == stable_.model();
    }
    [[nodiscard]] bool answers(const Pool& pool) const override { return &pool == &stable_; }
    [[nodiscard]] std::optional<std::string> refuse_pin(const Pool&) const override {
        return std::nullopt;
    }

private:
    Pool& stable_;
};

}  // namespace sluice::gateway
