#pragma once

// Answers and their copies on the way to each other: which copy belongs to which answer, and what both
// said, until they can be compared. An answer waits for its copies here, never the other way round:
// its client has it long since.
//
// Bounded by the requests that live: what ends leaves.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/request_preparer.h"
#include "gateway/request_report.h"
#include "traffic/comparison.h"
#include "traffic/controller.h"

namespace sluice::gateway {

/// One side of a comparison: what was reported, and what the request was made into.
struct ShadowSide {
    RequestReport report;
    std::shared_ptr<const PreparedRequest> prepared;  ///< Of native pools.
};

/// Both sides have ended. `copy` still holds its place in the budget.
struct ShadowPair {
    ShadowSide answer;
    ShadowSide copy;
    traffic::Copy place;
    bool fixed = false;  ///< The request fixes its answer: greedy, or seeded.
};

class ShadowPairs {
public:
    /// `rid` has been copied as `copy_rid`.
    void add(const std::string& rid, bool fixed, const std::string& copy_rid, traffic::Copy place);

    /// A request of ours has ended; the pairs that are complete by it, each once.
    [[nodiscard]] std::vector<ShadowPair> on_done(ShadowSide side);

    /// Rids of the copies that run on `pool`; of all pools if it is empty.
    [[nodiscard]] std::vector<std::string> running(std::string_view pool = {}) const;
    [[nodiscard]] std::size_t size() const { return groups_.size(); }

private:
    struct CopySide {
        std::string rid;
        traffic::Copy place;
        std::optional<ShadowSide> side;
    };
    struct Group {
        bool fixed = false;
        std::optional<ShadowSide> answer;
        std::vector<CopySide> copies;
    };

    std::map<std::string, Group, std::less<>> groups_;           ///< By the answer's rid.
    std::map<std::string, std::string, std::less<>> answer_of_;  ///< Of a copy.
};

/// What the sides have to say to each other.
[[nodiscard]] traffic::Comparison compare(const ShadowPair& pair);

/// Whether both gave tokens of one vocabulary.
[[nodiscard]] bool tokens_comparable(const ShadowPair& pair);

}  // namespace sluice::gateway
