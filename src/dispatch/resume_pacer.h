#pragma once

// Lets what lost its worker go on little by little. When a worker dies, all it did must be computed
// again, prompts and answers, by those that are left; all at once it would stand before everything
// that they do already. So only so many tokens a ready worker are under way; the rest waits, and goes
// on as soon as one is through.
//
// Not thread-safe. Outlives every turn it grants.

#include <cstdint>
#include <optional>
#include <vector>

#include "routing/registry.h"

namespace sluice::dispatch {

class ResumePacer {
public:
    /// Long enough to keep a worker busy, and a few seconds of one that computes 10,000 tokens a second.
    static constexpr std::uint64_t kTokensPerWorker = 16'384;

    explicit ResumePacer(std::uint64_t tokens_per_worker = kTokensPerWorker)
        : tokens_per_worker_(tokens_per_worker) {}
    ~ResumePacer();
    ResumePacer(const ResumePacer&) = delete;
    ResumePacer& operator=(const ResumePacer&) = delete;

    /// The right to compute again; ends with its scope.
    class Turn {
    public:
        Turn() = default;
        Turn(Turn&& other) noexcept;
        Turn& operator=(Turn&& other) noexcept;
        ~Turn() { end(); }
        void end() noexcept;
        [[nodiscard]] bool active() const { return pacer_ != nullptr; }

    private:
        friend class ResumePacer;
        Turn(ResumePacer& pacer, routing::PoolIndex pool, std::uint64_t tokens);

        ResumePacer* pacer_ = nullptr;
        routing::PoolIndex pool_ = 0;
        std::uint64_t tokens_ = 0;
    };

    /// Nothing if it isn't its turn yet. One is always under way, however long it is.
    [[nodiscard]] std::optional<Turn> admit(routing::PoolIndex pool, std::uint64_t tokens,
                                            std::uint32_t workers);

    /// Tokens under way.
    [[nodiscard]] std::uint64_t tokens(routing::PoolIndex pool) const;

private:
    [[nodiscard]] std::uint64_t& of(routing::PoolIndex pool);

    std::uint64_t tokens_per_worker_;
    std::vector<std::uint64_t> tokens_;  ///< By pool.
};

}  // namespace sluice::dispatch
