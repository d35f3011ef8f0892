#pragma once

// One running request of a worker: from its place in the engine to the last byte of its answer.
//
// Whoever stands to gain nothing more from it (the client left, its deadline passed, somebody
// aborted it) has it aborted in the engine, and it lives on until the engine confirms: as long as a
// Generation lives its id is taken and its blocks may be; once it has ended, nothing is.
//
// It first fetches what others have computed already (kv_fetch.h), and leaves what it computes where
// others find it (kv_publication.h); its answer's way is frame_writer.h's. A prefill ends with its
// blocks held for whoever decodes (kv_holds.h).
//
// Everything runs on the loop's thread; the engine's only fills the mailbox.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "port/generate.h"
#include "worker/frame_writer.h"
#include "worker/kv_fetch.h"
#include "worker/kv_publication.h"
#include "worker/kv_transfer.h"
#include "worker/mailbox.h"
#include "worker/worker_metrics.h"

namespace sluice::worker {

class Generation : public std::enable_shared_from_this<Generation> {
public:
    /// What it needs of its worker, which outlives it.
    struct Host {
        net::EventLoop& loop;
        engine::Engine& engine;
        std::size_t rank;  ///< Of the engine.
        KvTransfer& kv;
        KvPublisher& publisher;
        Sha256Digest producer;  ///< Digest of this worker's version.
        WorkerMetrics& metrics;
        std::chrono::milliseconds heartbeat;  ///< Longest silence of a stream.
        std::function<void(const std::string& rid)> on_end;
    };

    Generation(Host host, std::shared_ptr<net::HttpExchange> exchange,
               const port::GenerateRequest& request);

    /// Hands the request to the engine and begins the answer. On an error, which is the engine's,
    /// nothing was answered and the object is of no further use.
    [[nodiscard]] Result<void> start(port::GenerateRequest request);

    /// Ends it before the engine's next step. The client gets what there is, and a finish reason of
    /// type abort with `reason`; the first reason counts.
    void abort(std::string reason);

private:
    [[nodiscard]] Result<void> submit(engine::Request request);
    void begin();
    [[nodiscard]] bool looks_elsewhere(const port::GenerateRequest& request) const;
    void fetch(const port::GenerateRequest& request);
    void on_fetched(const KvFetch::Fetched& fetched);
    void on_output();
    /// Everything that a frame says of `output`; its blocks are held if it hands them over.
    [[nodiscard]] port::GenerateFrame frame_of(engine::Output output);
    /// Ends a request that the engine doesn't have.
    void end_with(port::FinishReason reason);
    void on_client_gone();
    void note_admission(const engine::Output& output);
    void note_first_token();
    void publish(const engine::Output& output);

    Host host_;
    const std::string rid_;
    const bool is_decode_;
    const std::uint64_t deadline_ms_;
    const std::shared_ptr<Mailbox> mailbox_;
    FrameWriter writer_;
    std::uint64_t steps_ = 0;                            ///< Of the engine, at the last heartbeat.
    std::shared_ptr<KvFetch> fetch_;                     ///< While blocks are fetched.
    std::optional<engine::Request> after_fetch_;         ///< What the engine gets then.
    std::map<std::string, std::size_t> fetched_tokens_;  ///< By source.
    std::optional<KvPublication> publication_;
    std::string abort_reason_;
    bool admitted_ = false;
    /// From the end of the fetch to the first token.
    struct Computing {
        std::chrono::steady_clock::time_point began;
        std::chrono::nanoseconds predicted{};
    };
    std::optional<Computing> computing_;
    std::optional<port::KvDecision> decision_;  ///< Until a frame has told it.
    net::Timer deadline_;
    net::Timer retry_;
};

}  // namespace sluice::worker
