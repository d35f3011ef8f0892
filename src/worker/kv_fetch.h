#pragma once

// Brings the blocks of a prompt from wherever they are into the engine's pool, before the request is
// submitted: from the worker that prefilled it and holds them, from this worker's other tiers, from
// workers that have them by chance.
//
// Which blocks it wants it says itself, from the tokens and its own engine's root: a key that somebody
// names differently is of another model, dtype or salt, and is not asked for. What comes is believed
// if its checksums, key, parent and sizes are right. A hand-over's blocks are always fetched; others
// only if that is predicted to be sooner than computing them (kv_hops.h), and no longer than computing
// them would have taken. One place after the other is asked for what is still missing. Tiers are not
// even waited for to say what they have, if computing is nearly as quick.
// Blocks may be missing in the middle: the engine computes what lies between (kv/usable_prefix.h).
//
// Everything on the loop's thread, but for the copies' room, which the engine gives.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/generate.h"
#include "worker/kv_hops.h"
#include "worker/kv_options.h"
#include "worker/kv_pull.h"
#include "worker/kv_releases.h"
#include "worker/kv_tiers.h"

namespace sluice::worker {

class KvFetch : public std::enable_shared_from_this<KvFetch> {
public:
    static constexpr std::string_view kPool = "pool";
    static constexpr std::string_view kPeer = "peer";

    /// What it needs of its worker, which outlives it.
    struct Host {
        net::EventLoop& loop;
        net::HttpClient& client;
        engine::Engine& engine;
        const KvOptions& options;
        KvReleases& releases;
        KvTiers& tiers;
    };

    struct Fetched {
        std::size_t imported_tokens = 0;  ///< For engine::Request.
        std::size_t missing_tokens = 0;   ///< But for the last one, those that nobody had.
        /// Tokens, by where they came from: `kPeer`, or a tier's name.
        std::map<std::string, std::size_t> tokens_by_source;
        std::size_t blocks = 0;  ///< That came from elsewhere.
        std::size_t corrupt_blocks = 0;
        std::vector<LoadRecord> loads;  ///< By place that had something.
        /// From then on, until the first token is there: what runs, and what is left to compute.
        std::chrono::nanoseconds predicted{};
        kvnode::ChainPtr chain;  ///< Of all full blocks.
        kv::KeyChain names;
        /// By block: where it came from, `kPool`, or empty if it has to be computed.
        std::vector<std::string_view> sources;
    };

    /// `on_done` is called once, never from inside `start`, unless the fetch is cancelled before.
    [[nodiscard]] static std::shared_ptr<KvFetch> start(
        Host host, const port::GenerateRequest& request,
        std::function<void(const Fetched&)> on_done);
    KvFetch(Host host, const port::GenerateRequest& request,
            std::function<void(const Fetched&)> on_done);

    /// Gives everything back, here and at the sources. Nothing is called any more.
    void cancel();

private:
    using Clock = std::chrono::steady_clock;
    using FoundIn = std::vector<std::optional<Retention>>;  ///< By block.

    struct Wanted {
        engine::NamedBlock name;
        std::size_t tokens = 0;
        std::string_view source;          ///< Empty: missing.
        std::optional<std::size_t> room;  ///< Its place in `room_`, if it is to be loaded.
    };
    template <class Work>
    [[nodiscard]] auto with_self(Work work);

    void name_blocks();
    void trim_sources(const std::vector<kv::BlockKey>& keys);
    void name_tail();
    void look();
    void on_look(engine::BlockDesk::Found found);
    [[nodiscard]] std::chrono::nanoseconds look_up_time() const;
    void find_in_tiers();
    void end_finds();
    void add_hops();
    /// By block: whether it is in the pool, or has come.
    [[nodiscard]] kv::StoredParts here() const;
    /// Of the longest usable prefix, what is not here.
    [[nodiscard]] std::vector<std::size_t> to_load() const;
    void decide();
    [[nodiscard]] std::chrono::nanoseconds queue_time() const;
    [[nodiscard]] std::chrono::nanoseconds compute_time(std::span<const std::size_t> blocks) const;
    [[nodiscard]] std::chrono::nanoseconds compute_time(const kv::UsablePrefix& prefix) const;
    void make_room();
    void on_room(std::shared_ptr<engine::BlockHold> room);
    void ask_next();
    void ask(const KvHop& hop);
    [[nodiscard]] Clock::time_point deadline_of(const KvHop& hop, Clock::time_point now);
    void ask_peer(const KvHop& hop, std::chrono::nanoseconds time);
    void ask_store(const KvHop& hop, Clock::time_point until);
    void on_value(std::size_t asked, std::string_view source, const kv::BlockValue& value,
                  std::size_t bytes);
    void on_corrupt(const Error& error);
    void end_hop(const std::string& why);
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
    kvnode::ChainPtr chain_;
    std::vector<Wanted> wanted_;  ///< Every full block of the tokens, in order.
    std::optional<Wanted> tail_;  ///< The part that is held of the block after `held_` full ones.
    std::size_t held_ = 0;        ///< Of `wanted_`, those that some hand-over's source holds.
    std::vector<FoundIn> found_in_;  ///< By tier.
    std::size_t finds_ = 0;          ///< Waited for.
    net::Timer find_timer_;
    KvHops hops_;
    /// Where nothing was decided, because somebody held the blocks for this request.
    std::optional<Clock::time_point> load_until_;
    std::vector<Wanted*> asked_;                      ///< Of the present hop.
    std::shared_ptr<const engine::BlockHold> found_;  ///< Keeps what is in the pool there.
    std::shared_ptr<engine::BlockHold> room_;
    std::unique_ptr<KvPull> pull_;
    std::unique_ptr<kvnode::Load> store_load_;
    Clock::time_point hop_began_;
    std::size_t hop_bytes_ = 0;
    std::size_t corrupt_ = 0;
    bool over_ = false;
};

}  // namespace sluice::worker
