#pragma once

// Runs a request on engines that speak the engine port: posts its tokens, pumps theirs to the client.
// A broken leg goes on elsewhere bit for bit, because a native engine's tokens depend on the request
// alone: the new worker is given the journal. A worker of another model is not asked.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "adapters/hold_releaser.h"
#include "adapters/native_leg.h"
#include "gateway/answer_writer.h"
#include "gateway/block_chain.h"
#include "gateway/leg_runner.h"
#include "gateway/request_preparer.h"
#include "gateway/token_pump.h"
#include "net/http_client.h"

namespace sluice::gateway {

class NativeRunner final : public LegRunner {
public:
    /// They outlive the runner.
    struct Services {
        net::HttpClient& client;
        adapters::HoldReleaser& holds;
        const text::Tokenizer& tokenizer;
        std::chrono::milliseconds stall_time;  ///< Longest silence of a leg.
    };
    NativeRunner(const Services& services, const InboundRequest& request,
                 std::shared_ptr<const PreparedRequest> prepared, LegObserver& observer);
    ~NativeRunner() override;

    [[nodiscard]] LegDemand demand() override;
    [[nodiscard]] std::expected<void, NoStart> start(const Assignment& assignment) override;
    void stop() override;
    void release() override;
    void collect() override;
    [[nodiscard]] std::optional<std::string> pass_refusal_on() override;
    void fail(const protocol::ApiError& error) override;
    [[nodiscard]] RunnerReport report() const override;
    [[nodiscard]] std::span<const kv::BlockKey> block_keys() const override {
        return chain_.keys();
    }

private:
    void open_writer(const port::ServerInfo& info);
    [[nodiscard]] port::GenerateRequest port_request(std::uint32_t max_new_tokens) const;
    /// False if the frame ended the leg, one way or the other.
    [[nodiscard]] bool take(const port::GenerateFrame& frame);
    void on_handover(const port::GenerateFrame& frame);
    [[nodiscard]] bool shows_progress(const port::GenerateFrame& frame);
    [[nodiscard]] net::HttpHeaders answer_headers() const;
    void on_frame(const port::GenerateFrame& frame);
    [[nodiscard]] bool gave_up(const port::GenerateFrame& frame);
    void write(const std::vector<Piece>& pieces);
    void count(const port::GenerateFrame& frame, std::size_t before);
    void keep(const port::GenerateFrame& frame, const std::vector<Piece>& pieces);
    void on_error(const Error& error, adapters::Reached reached);

    const Services services_;
    const InboundRequest& request_;
    std::shared_ptr<const PreparedRequest> prepared_;
    LegObserver& observer_;
    std::uint64_t seed_;
    TokenPump pump_;
    BlockChain chain_;
    std::unique_ptr<AnswerWriter> writer_;
    std::unique_ptr<adapters::NativeLeg> leg_;
    std::string pool_;                                     ///< That the answer came from.
    std::string url_;                                      ///< Of the running leg.
    std::shared_ptr<const port::ServerInfo> computed_by_;  ///< What the last worker is.
    std::optional<std::uint32_t> rank_;
    routing::LegPhase phase_ = routing::LegPhase::kFull;  ///< Of the running leg.
    std::optional<port::KvSource> held_;                  ///< By the last prefill worker.
    std::optional<Lender> lender_;                        ///< Of the running leg.
    std::optional<protocol::ApiError> refusal_;
    std::shared_ptr<CollectedAnswer> collected_;
    RunnerReport report_;
    std::uint64_t known_tokens_ = 0;  ///< Of the sequence, computed by the legs before.
    std::uint64_t leg_tokens_ = 0;    ///< Of the sequence, computed by the running leg.
    std::uint64_t leg_seen_ = 0;      ///< Found in a cache or computed, as its frames say.
    std::chrono::steady_clock::time_point last_write_;
    bool begun_ = false;
};

}  // namespace sluice::gateway
