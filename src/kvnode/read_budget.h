#pragma once

// What the values that come from the SSD for readers take in memory, until the kernel has them: of all
// clients together, since a client that doesn't read costs nothing but patience.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "kv/shared_bytes.h"

namespace sluice::kvnode {

class ReadBudget {
public:
    /// So many bytes of it are taken while this lives; it may outlive the budget.
    class Share {
    public:
        Share(std::shared_ptr<std::atomic<std::uint64_t>> used, std::uint64_t bytes)
            : used_(std::move(used)), bytes_(bytes) {
            *used_ += bytes_;
        }
        ~Share() { *used_ -= bytes_; }
        Share(const Share&) = delete;
        Share& operator=(const Share&) = delete;

    private:
        std::shared_ptr<std::atomic<std::uint64_t>> used_;
        std::uint64_t bytes_;
    };
    using SharePtr = std::shared_ptr<const Share>;

    explicit ReadBudget(std::uint64_t most) : most_(most) {}

    /// Null: there is no room for so much.
    [[nodiscard]] SharePtr take(std::uint64_t bytes) {
        if (bytes > most_ || *used_ > most_ - bytes) return nullptr;
        return std::make_shared<const Share>(used_, bytes);
    }

    [[nodiscard]] std::uint64_t used() const { return *used_; }

private:
    std::uint64_t most_;
    std::shared_ptr<std::atomic<std::uint64_t>> used_ =
        std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// The same value, which gives back its share once nobody has it any more.
[[nodiscard]] inline kv::SharedBytes with_share(const kv::SharedBytes& value,
                                                ReadBudget::SharePtr share) {
    if (!value) return {};
    using Both = std::pair<std::shared_ptr<const void>, ReadBudget::SharePtr>;
    return {.bytes = value.bytes,
            .owner = std::make_shared<const Both>(value.owner, std::move(share))};
}

}  // namespace sluice::kvnode
