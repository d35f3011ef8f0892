#pragma once

// The decode side of a hand-over: brings the blocks of a prompt from the workers that hold them into
// the engine's pool, before the request is submitted.
//
// Which blocks it wants it says itself, from the tokens and its own engine's root: a key that a source
// names differently is of another model, dtype or salt, and is not asked for. What comes is believed
// if its checksums, key, parent and sizes are right. Each source gets its time, and one after the other
// is asked for what is still missing; then all are told that they need not hold it any longer. What
// could not be had is left to the engine to compute.
//
// Everything on the loop's thread, but for the copies' room, which the engine gives.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/generate.h"
#include "worker/kv_options.h"
#include "worker/kv_releases.h"

namespace sluice::worker {

class KvFetch : public std::enable_shared_from_this<KvFetch> {
public:
    /// What it needs of its worker, which outlives it.
    struct Host {
        net::EventLoop& loop;
        net::HttpClient& client;
        engine::Engine& engine;
        const KvOptions& options;
        KvReleases& releases;
    };

    struct Fetched {
        std::size_t imported_tokens = 0;  ///< For engine::Request.
        std::size_t usable_tokens = 0;    ///< From the first on, without a gap.
        std::size_t pulled_tokens = 0;    ///< Of the usable ones, those that came from others.
        std::size_t pulled_blocks = 0;
        std::size_t corrupt_blocks = 0;
    };

    /// `on_done` is called once, never from inside `start`, unless the fetch is cancelled before.
    [[nodiscard]] static std::shared_ptr<KvFetch> start(
        Host host, const port::GenerateRequest& request,
        std::function<void(const Fetched&)> on_done);
    KvFetch(Host host, const port::GenerateRequest& request,
            std::function<void(const Fetched&)> on_done);

    /// Gives everything back, here and at the sources. Nothing is called any more.
    void cancel();

    /// Grows while blocks come in.
    [[nodiscard]] std::size_t received_bytes() const { return received_bytes_; }

private:
    struct Wanted {
        engine::NamedBlock name;
        std::size_t tokens = 0;
        bool is_there = false;   ///< In this pool, or in `room_`.
        bool is_pulled = false;  ///< In `room_`.
        std::size_t room = 0;    ///< Its place there, unless it was in the pool.
    };
    /// What the engine said of the blocks that are wanted.
    struct Look {
        engine::BlockDesk::Found found;
        std::shared_ptr<engine::BlockHold> room;
    };

    void name_blocks();
    void look();
    void on_look(Look look);
    [[nodiscard]] std::vector<Wanted*> missing(std::size_t full, bool with_tail);
    void ask_next_source();
    void ask(const port::KvSource& source);
    void on_done();
    void on_data(std::string_view data);
    [[nodiscard]] Result<std::size_t> value_bytes() const;
    [[nodiscard]] Result<void> take(std::string_view value);
    void end_hop(std::string_view why);
    void finish();
    void release_sources();
    [[nodiscard]] Fetched count() const;
    [[nodiscard]] engine::BlockDesk::Written written() const;

    Host host_;
    std::function<void(const Fetched&)> on_done_;
    std::string rid_;
    std::vector<TokenId> tokens_;  ///< Prompt and resumed output.
    kv::KeyChain names_;
    std::vector<port::KvSource> sources_;
    std::vector<Wanted> wanted_;  ///< Every full block of the tokens, in order.
    std::optional<Wanted> tail_;  ///< The part that is held of the block after `held_` full ones.
    std::size_t held_ = 0;        ///< Of `wanted_`, those that some source has.
    std::vector<Wanted*> asked_;  ///< Of the present source, in order.
    std::size_t next_asked_ = 0;
    std::shared_ptr<const engine::BlockHold> found_;  ///< Keeps what is in the pool there.
    std::shared_ptr<engine::BlockHold> room_;
    std::size_t next_source_ = 0;
    std::string buffer_;  ///< The value that is coming in.
    std::unique_ptr<net::HttpCall> call_;
    int status_ = 0;
    net::Timer deadline_;
    std::size_t received_bytes_ = 0;
    std::size_t corrupt_ = 0;
    bool over_ = false;
};

}  // namespace sluice::worker
