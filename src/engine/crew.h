#pragma once

// How the rows of a pass are shared out over the thread team. Many rows: each member takes a range of
// them through several operations without waiting for the others. Few rows: one lane takes them all,
// and the team splits each matrix product. Which of the two is a matter of speed; no bit depends on it.

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/thread_team.h"
#include "engine/projection.h"
#include "tensor/aligned_buffer.h"

namespace sluice::engine {

/// Rows [begin, end) of a pass.
struct RowRange {
    std::size_t begin = 0;
    std::size_t end = 0;

    [[nodiscard]] std::size_t count() const { return end - begin; }
};

/// What one part of the work computes with; no two parts share one.
struct Lane {
    Projection projection;
    tensor::FloatBuffer gate;                 ///< [rows][feed-forward size].
    tensor::FloatBuffer up;                   ///< [rows][feed-forward size].
    tensor::FloatBuffer gathered;             ///< Inputs of one expert [rows][width].
    tensor::FloatBuffer produced;             ///< Outputs of one expert [rows][width].
    tensor::FloatBuffer scores;               ///< Of one row's attention.
    std::vector<std::uint32_t> expert_order;  ///< Of one row, the best first.
    std::vector<float> expert_keys;
};

class Crew {
public:
    struct Sizes {
        std::size_t rows = 0;    ///< Of a step; a pass may have fewer, pass_rows().
        std::size_t inputs = 0;  ///< Of any matrix.
        std::size_t width = 0;
        std::size_t feed_forward = 0;
        std::size_t attention_scratch = 0;
        std::size_t experts = 0;
        std::size_t weight_bytes = 0;  ///< Of the whole model.
    };

    Crew(ThreadTeam& team, const Sizes& sizes);

    [[nodiscard]] std::size_t members() const { return team_->size(); }

    /// Most rows of a pass: as many as the members' caches hold the activations of.
    [[nodiscard]] std::size_t pass_rows() const { return pass_rows_; }

    /// Shares out passes of `rows` rows from now on.
    void begin(std::size_t rows);

    /// The lane whose products the whole team computes.
    [[nodiscard]] Lane& whole() { return lanes_.back(); }

    /// work(lane, range) until every row of the pass is in one range.
    template <class Work>
    void for_ranges(const Work& work) {
        if (!by_rows_) return work(whole(), RowRange{0, rows_});
        const std::size_t size = team_->size();
        team_->run([&](std::size_t part) {
            work(lanes_[part], RowRange{rows_ * part / size, rows_ * (part + 1) / size});
        });
    }

    /// work(row, lane) for every row, neighbours on different members: rows further down a prompt
    /// have more to look back on. `cost` of a row in elements says whether the team is worth it.
    template <class Work>
    void for_rows(std::size_t cost, const Work& work) {
        if (team_->size() == 1 || rows_ * cost < kTeamElements) {
            for (std::size_t row = 0; row < rows_; ++row) work(row, lanes_.front());
            return;
        }
        team_->run([&](std::size_t part) {
            for (std::size_t row = part; row < rows_; row += team_->size()) work(row, lanes_[part]);
        });
    }

    /// work(item, lane) for items 0, 1, ... in this order, for a caller that has `lane`. Where that is the
    /// team's, each item is one member's, whoever is free: one gathering for all of them instead of some
    /// for each. What does not share out evenly then is the whole team's, item by item; not so with many
    /// rows, whose items differ. `cost` of all in multiply-adds says whether the team is worth it.
    template <class Work>
    void for_items(Lane& lane, std::size_t items, std::size_t cost, const Work& work) {
        const std::size_t size = team_->size();
        std::size_t shared = 0;
        if (&lane == &whole() && size > 1 && cost >= kTeamWorkOneRow)
            shared = by_rows_ ? items : items / size * size;
        if (shared > 0) {
            std::atomic<std::size_t> next{0};
            team_->run([&](std::size_t part) {
                for (std::size_t item = next++; item < shared; item = next++)
                    work(item, lanes_[part]);
            });
        }
        for (std::size_t item = shared; item < items; ++item) work(item, lane);
    }

private:
    static constexpr std::size_t kTeamElements = 16 * 1024;

    ThreadTeam* team_;
    ThreadTeam alone_{1};
    std::size_t pass_rows_;
    bool cached_weights_;
    std::size_t rows_ = 0;
    bool by_rows_ = false;
    std::vector<Lane> lanes_;  ///< One for each member, then, in a team, the one for all.
};

}  // namespace sluice::engine
