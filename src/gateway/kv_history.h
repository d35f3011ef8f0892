#pragma once

// The names of the blocks of recent requests, so that an operator can pin the prefix of one of them.
//
// Belongs to the event loop's thread.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/request_report.h"
#include "kv/block_key.h"

namespace sluice::gateway {

class KvHistory final : public RequestObserver {
public:
    struct Entry {
        std::string rid;
        std::string request_id;
        std::string tenant;
        std::vector<kv::BlockKey> keys;  ///< Of the prompt's full blocks.
    };

    /// Keeps the names of so many blocks, and of none that came before.
    explicit KvHistory(std::size_t blocks_max = 512 * 1024) : blocks_max_(blocks_max) {}

    void on_done(const Generation& generation, const RequestReport& report) override;

    void remember(Entry entry);
    /// The last one with this rid or client's id; nullptr if it is not known any more.
    [[nodiscard]] const Entry* find(std::string_view id) const;
    [[nodiscard]] std::size_t blocks() const { return blocks_; }

private:
    std::size_t blocks_max_;
    std::size_t blocks_ = 0;
    std::deque<Entry> entries_;  ///< The oldest first.
};

}  // namespace sluice::gateway
