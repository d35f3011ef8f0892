#pragma once

// Runs a request on a pass-through pool: the client's own body goes there, and what comes back goes to
// the client as it is, read beside for what must be known of it: whether tokens came, how it ended,
// what was used. An answer that has begun is never begun again elsewhere.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/openai_leg.h"
#include "gateway/leg_runner.h"
#include "gateway/upstream_pool.h"
#include "protocol/upstream_chunk.h"

namespace sluice::gateway {

class UpstreamRunner final : public LegRunner {
public:
    UpstreamRunner(net::EventLoop& loop, net::HttpClient& client,
                   const UpstreamPoolOptions& options, const InboundRequest& request,
                   LegObserver& observer);

    [[nodiscard]] LegDemand demand() override;
    [[nodiscard]] std::expected<void, NoStart> start(const Assignment& assignment) override;
    void stop() override;
    void collect() override;
    [[nodiscard]] std::optional<std::string> pass_refusal_on() override;
    void fail(const protocol::ApiError& error) override;
    [[nodiscard]] RunnerReport report() const override;

private:
    struct Answer {
        int status = 0;
        net::HttpHeaders headers;
        std::string body;
    };

    [[nodiscard]] std::vector<net::SharedText> body_for_upstream() const;
    void on_stream(const net::HttpHeaders& headers);
    void on_event(const net::SseCutter::Piece& piece);
    void on_pause();
    void on_end(std::string_view tail);
    void on_answer(Answer answer);
    void on_failed_answer(Answer answer, const protocol::UpstreamChunk& chunk);
    void complete();

    void end_for_client();
    [[nodiscard]] bool take(const protocol::UpstreamChunk& chunk);
    void pass_on(const net::SseCutter::Piece& piece, const protocol::UpstreamChunk& chunk);
    void keep(const protocol::UpstreamChunk& chunk);
    void respond(Answer answer);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    const UpstreamPoolOptions& options_;
    const InboundRequest& request_;
    LegObserver& observer_;
    std::unique_ptr<adapters::OpenAiLeg> leg_;
    std::optional<Answer> refusal_;
    std::shared_ptr<CollectedAnswer> collected_;
    RunnerReport report_;
    std::string pending_;  ///< Events that came together, to be written together.
    std::uint32_t pending_tokens_ = 0;
    bool adds_usage_ = false;   ///< We asked for a usage event that the client did not ask for.
    std::string client_model_;  ///< As JSON; empty if the pool calls the model as clients do.
    net::Timer connection_end_;
    bool begun_ = false;            ///< The head of a stream is out.
    bool ended_ = false;            ///< So is its end.
    bool done_seen_ = false;        ///< [DONE], or a finish reason: the answer is complete.
    bool stream_end_seen_ = false;  ///< [DONE] itself: nothing follows.
    bool error_seen_ = false;       ///< The stream itself says that it failed.
    std::string error_message_;
};

}  // namespace sluice::gateway
