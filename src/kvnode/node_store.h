#pragma once

// What a cache node keeps: values in memory, over an SSD where there is one. What is put goes to
// memory at once and to the SSD behind its writer's back; what only the SSD has comes back to memory
// when it is asked for. What a damaged or missing SSD entry costs is a miss.
//
// Everything on the loop's thread, callbacks included; they are never called from inside the call, and
// not at all once the store is gone.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/task_pool.h"
#include "kv/dram_tier.h"
#include "kv/ssd_tier.h"
#include "kvnode/node_events.h"
#include "net/event_loop.h"
#include "port/kv_status.h"

namespace sluice::kvnode {

class NodeStore {
public:
    struct Options {
        kv::DramTier::Options dram;
        std::optional<kv::SsdOptions> ssd{};
        std::size_t events_kept = limits::kKvEventsKept;
    };
    using Stored = kv::DramTier::Stored;
    using Got = std::function<void(kv::SharedBytes)>;  ///< Empty: it isn't here.

    struct Checked {
        std::uint64_t whole = 0;
        std::uint64_t bytes = 0;
        std::uint64_t damaged = 0;  ///< They are gone now.
    };

    /// Errors: the SSD tier's.
    [[nodiscard]] static Result<std::unique_ptr<NodeStore>> open(net::EventLoop& loop,
                                                                 Options options);
    ~NodeStore();
    NodeStore(const NodeStore&) = delete;
    NodeStore& operator=(const NodeStore&) = delete;

    /// A use. Empty: not in memory, though the SSD may have it.
    [[nodiscard]] kv::SharedBytes in_memory(std::string_view name, kv::WallTime now);
    /// Whether only the SSD has it, so that it has to be fetched.
    [[nodiscard]] bool only_on_ssd(std::string_view name, kv::WallTime now) const;
    /// From the SSD to memory.
    void fetch(std::string_view name, kv::WallTime now, Got got);

    [[nodiscard]] bool contains(std::string_view name, kv::WallTime now) const;
    [[nodiscard]] std::optional<std::uint64_t> value_bytes(std::string_view name,
                                                           kv::WallTime now) const;
    /// As DramTier::time_left.
    [[nodiscard]] std::optional<std::chrono::milliseconds> time_left(std::string_view name,
                                                                     kv::WallTime now) const;

    /// As DramTier::put, for both tiers. A block that only the SSD has must be fetched before (unless
    /// `only_if_absent` is said), so that it can be compared.
    [[nodiscard]] Stored put(std::string_view name, kv::SharedBytes value,
                             const kv::DramTier::PutOptions& options, kv::WallTime now);
    bool erase(std::string_view name, kv::WallTime now);
    /// As DramTier::erase_if, in both tiers; `done` hears how many there were in the larger one.
    void erase_if(const std::optional<std::string>& tenant, std::optional<kv::Retention> retention,
                  std::function<void(std::uint64_t erased)> done);
    /// A use, too. False if it isn't here.
    bool expire(std::string_view name, kv::WallTime when, kv::WallTime now);
    /// As DramTier::bound_tenants: of memory alone. The SSD has no bound but its own.
    void bound_tenants(kv::DramTier::TenantBounds bounds) {
        dram_->bound_tenants(std::move(bounds));
    }
    /// In memory. What only the SSD has is fetched first; nothing then, and `done` is called.
    [[nodiscard]] std::optional<bool> pin(std::string_view name, kv::WallTime until,
                                          kv::WallTime now, std::function<void(bool)> done);

    /// Some names from `cursor` on; the next cursor, 0 at the end. What is here during a whole scan is
    /// met at least once. Cursors are below 2^53, which all clients can count to.
    [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count, kv::WallTime now,
                                     FunctionRef<void(std::string_view)> visit) const;
    /// Names in both tiers; at least, while the SSD lacks some of memory's.
    [[nodiscard]] std::uint64_t entries() const;

    /// Reads and checks all that is here, slowly, on a thread. False: that goes on already.
    [[nodiscard]] bool verify(std::function<void(Checked)> done);
    void snapshot(const std::function<void(KvEventFeed::Snapshot)>& done);
    /// What each tenant has of each class on the SSD; all names are gone through on another thread.
    void ssd_holdings(std::function<void(std::vector<port::KvHolding>)> done);
    /// Gives up what is over, a part at each call; to be called once a second or so.
    void sweep(kv::WallTime now);
    /// When everything is on the SSD for good.
    void sync(std::function<void(Result<void>)> done);

    [[nodiscard]] KvEventLog& events() { return events_.log(); }
    [[nodiscard]] const kv::DramTier& dram() const { return *dram_; }
    [[nodiscard]] const kv::SsdTier* ssd() const { return ssd_.get(); }
    /// Blocks from the SSD that were not what their names say.
    [[nodiscard]] std::uint64_t misnamed() const { return misnamed_; }

private:
    struct Alive {};
    /// A read from the SSD, and who waits for it. One that was written or erased meanwhile is `stale`:
    /// those who asked before get what there was, but it doesn't come back to memory.
    struct Fetch {
        std::vector<Got> waiting;
        bool stale = false;
    };
    using Fetches = std::map<std::string, std::shared_ptr<Fetch>, std::less<>>;

    NodeStore(net::EventLoop& loop, const Options& options);
    void fetched(const std::string& name, const std::shared_ptr<Fetch>& fetch,
                 Result<kv::SharedBytes> value);
    [[nodiscard]] kv::SharedBytes promote(const std::string& name, kv::SharedBytes value);
    void forget_fetch(std::string_view name);
    [[nodiscard]] std::vector<port::KvHolding> count_ssd() const;
    [[nodiscard]] Checked check_all();
    void check_dram(Checked& checked);
    void check_ssd(Checked& checked);

    net::EventLoop& loop_;
    NodeEvents events_;
    std::unique_ptr<kv::DramTier> dram_;
    std::unique_ptr<kv::SsdTier> ssd_;
    Fetches fetches_;
    std::uint64_t misnamed_ = 0;
    bool verifying_ = false;
    std::atomic<bool> stopping_ = false;
    std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
    std::unique_ptr<TaskPool> tasks_;  ///< Ends first: its tasks read the tiers.
};

/// Whether `value` is the block that its name says, if that names a block.
[[nodiscard]] bool is_what_it_says(std::string_view name, std::string_view value);

}  // namespace sluice::kvnode
