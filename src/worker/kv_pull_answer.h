#pragma once

// One answer to POST /kv/pull: the values of held blocks, and of blocks that are in the pool or in this
// worker's memory, one after the other, as fast as the reader takes them. It holds what it is about to
// send, and lives until the last byte is handed over or the reader is gone.
//
// Everything on the loop's thread.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fault_points.h"
#include "engine/engine.h"
#include "kv/dram_tier.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "port/kv_pull.h"

namespace sluice::worker {

class KvPullAnswer : public std::enable_shared_from_this<KvPullAnswer> {
public:
    struct Host {
        net::EventLoop& loop;
        engine::Engine& engine;
        kv::DramTier* dram = nullptr;  ///< If it keeps any there.
        Sha256Digest producer;         ///< Digest of this worker's version.
        std::function<void(const KvPullAnswer*)> on_end;
    };

    KvPullAnswer(Host host, std::shared_ptr<net::HttpExchange> exchange);

    /// `held` is null if there is no such hold: then only what is in the pool is sent.
    void start(const port::KvPullRequest& request,
               const std::shared_ptr<const engine::HeldSequence>& held);

private:
    struct Block {
        engine::NamedBlock name;
        std::shared_ptr<const engine::BlockHold> hold;
        std::size_t index = 0;  ///< In the hold.
        std::size_t tokens = 0;
        std::string memory_name{};  ///< Instead of a hold: what it is called in memory.
    };
    void add(Block block);
    void add_held(const engine::HeldSequence& held);
    void add_found(const engine::BlockDesk::Found& found);
    void add_from_memory();
    [[nodiscard]] std::vector<kv::BlockKey> missing() const;
    void begin();
    void pump();
    [[nodiscard]] std::string value_of(const Block& block) const;
    void cut(std::string value);
    void end();

    Host host_;
    std::shared_ptr<net::HttpExchange> exchange_;
    std::string tenant_;
    std::map<kv::BlockKey, std::size_t> wanted_;  ///< And its place in `blocks_`.
    std::vector<std::optional<Block>> blocks_;    ///< In the order in which they are sent.
    std::size_t next_ = 0;
    net::Timer retry_;
};

}  // namespace sluice::worker
