#include "gateway/logprob_scorer.h"

#include <utility>

#include "gateway/leg_priority.h"
#include "gateway/random_id.h"

namespace sluice::gateway {

LogprobScorer::LogprobScorer(net::EventLoop& loop, net::HttpClient& client, Pool& baseline,
                             Pool& candidate, const PreparedRequest& prepared,
                             const std::vector<TokenId>& output, OnScores on_scores)
    : loop_(loop), client_(client), wanted_(output.size()), on_scores_(std::move(on_scores)) {
    port::GenerateRequest request;
    request.input_ids = prepared.prompt;
    request.input_ids.insert(request.input_ids.end(), output.begin(), output.end());
    request.sampling_params.max_new_tokens = 1;
    request.return_logprob = true;
    request.logprob_start_len = static_cast<std::int64_t>(prepared.prompt.size());
    request.priority = kScorePriority;
    start(baseline_, baseline, request);
    start(candidate_, candidate, std::move(request));
}

void LogprobScorer::start(Side& side, Pool& pool, port::GenerateRequest request) {
    LegDemand demand;
    demand.tokens = request.input_ids.size();
    auto assignment = pool.pick(demand, {});
    if (!assignment) return end(side);
    side.assignment = std::move(*assignment);
    request.rid = draw_rid();
    side.leg = adapters::NativeLeg::start(
        client_, side.assignment.url, std::move(request),
        {.on_frame = [this, &side](const port::GenerateFrame& frame) { take(side, frame); },
         .on_end = [this, &side] { end(side); },
         .on_error = [this, &side](const Error&, adapters::Reached) { end(side); }});
}

void LogprobScorer::take(Side& side, const port::GenerateFrame& frame) {
    for (const port::PositionLogprobs& position : frame.input_logprobs)
        side.logprobs.push_back(position.chosen.logprob);
}

void LogprobScorer::end(Side& side) {
    if (std::exchange(side.ended, true)) return;
    side.assignment = {};
    // Later: this may be one of the leg's own events, or the constructor.
    if (baseline_.ended && candidate_.ended) done_ = loop_.call_after({}, [this] { finish(); });
}

void LogprobScorer::finish() {
    const OnScores on_scores = std::move(on_scores_);
    const bool complete =
        baseline_.logprobs.size() == wanted_ && candidate_.logprobs.size() == wanted_;
    std::optional<Scores> scores;
    if (complete) scores = Scores{std::move(baseline_.logprobs), std::move(candidate_.logprobs)};
    on_scores(std::move(scores));  // May destroy this.
}

}  // namespace sluice::gateway
