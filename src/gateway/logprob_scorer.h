#pragma once

// Teacher forcing: both pools say how likely they find the tokens of one answer, the stable pool's.
// That tells two models apart where their texts happen to agree, and says how far apart they are
// where they don't. It costs one prefill on each pool, run at the lowest priority.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/native_leg.h"
#include "gateway/pool.h"
#include "gateway/request_preparer.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

class LogprobScorer {
public:
    struct Scores {
        std::vector<float> baseline;
        std::vector<float> candidate;
    };
    /// Nullopt if one of the pools could not say.
    using OnScores = std::function<void(std::optional<Scores>)>;

    /// `on_scores` is called once, later, unless the scorer is destroyed before.
    LogprobScorer(net::EventLoop& loop, net::HttpClient& client, Pool& baseline, Pool& candidate,
                  const PreparedRequest& prepared, const std::vector<TokenId>& output,
                  OnScores on_scores);
    LogprobScorer(const LogprobScorer&) = delete;
    LogprobScorer& operator=(const LogprobScorer&) = delete;

private:
    struct Side {
        Assignment assignment;
        std::unique_ptr<adapters::NativeLeg> leg;
        std::vector<float> logprobs;
        bool ended = false;
    };

    void start(Side& side, Pool& pool, port::GenerateRequest request);
    void take(Side& side, const port::GenerateFrame& frame);
    void end(Side& side);
    void finish();

    net::EventLoop& loop_;
    net::HttpClient& client_;
    std::size_t wanted_;  ///< Log-probabilities of each side.
    OnScores on_scores_;
    Side baseline_;
    Side candidate_;
    net::Timer done_;
};

}  // namespace sluice::gateway
