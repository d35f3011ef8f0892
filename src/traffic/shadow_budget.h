#pragma once

// How many copies run at a time. A copy is a place in the budget for as long as it lives.

#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::traffic {

class ShadowBudget {
public:
    /// Movable; gives its place back at the end of its life, even after its budget's.
    class Place {
    public:
        Place() = default;
        Place(Place&&) noexcept = default;
        Place& operator=(Place&& other) noexcept {
            release();
            used_ = std::move(other.used_);
            return *this;
        }
        ~Place() { release(); }
        [[nodiscard]] bool taken() const { return used_ != nullptr; }

    private:
        friend class ShadowBudget;
        explicit Place(std::shared_ptr<std::uint32_t> used) : used_(std::move(used)) { ++*used_; }
        void release() {
            if (used_) --*std::exchange(used_, nullptr);
        }
        std::shared_ptr<std::uint32_t> used_;
    };

    explicit ShadowBudget(std::uint32_t max) : max_(max) {}

    /// A place, or one that is not taken.
    [[nodiscard]] Place take() { return *used_ < max_ ? Place(used_) : Place(); }
    void set_max(std::uint32_t max) { max_ = max; }
    [[nodiscard]] std::uint32_t used() const { return *used_; }

private:
    std::uint32_t max_;
    std::shared_ptr<std::uint32_t> used_ = std::make_shared<std::uint32_t>(0);
};

}  // namespace sluice::traffic
