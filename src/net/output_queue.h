#pragma once

// Bytes on their way to the kernel. Small pieces are joined, large ones moved in or shared as they
// are, and all of it leaves in gathered writes. Empty, it holds no memory.
//
// Private to net/.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/shared_text.h"

namespace sluice::net {

class OutputQueue {
public:
    void add(std::string_view data);
    void move_in(std::string&& data);
    void share(SharedText&& data);

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return bytes_ == 0; }

    /// Fills `pieces` with what comes next; returns how many it filled.
    [[nodiscard]] std::size_t front(std::span<std::string_view> pieces) const;

    /// The first `count` bytes are gone.
    void drop(std::size_t count);
    void clear();

private:
    struct Piece {
        std::string own;
        SharedText shared;  ///< Instead, if it has an owner.
        [[nodiscard]] std::string_view text() const { return shared.owner ? shared.text : own; }
    };

    std::vector<Piece> pieces_;
    std::size_t first_ = 0;   ///< Index of the first piece that is not out.
    std::size_t offset_ = 0;  ///< Bytes of it that are out.
    std::size_t bytes_ = 0;
};

}  // namespace sluice::net
