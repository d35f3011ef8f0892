#pragma once

// A shared directory as a store of blocks. Files are read and written by threads of this store's own,
// because a file system over a network may take any time it likes; deadlines are kept on the loop.
//
// Once something has not come in time the store is down until the file system answers again: until
// then look-ups and loads are misses at once. Only so many blocks of a load are read at a time, and
// only so many bytes wait to be written; what is beyond that is not kept.
//
// It is destroyed on its loop's thread and before its loop, and waits then for the reads and writes
// that have begun: as long as the file system makes it wait.

#include <atomic>
#include <functional>
#include <unordered_map>

#include "base/fault_points.h"
#include "base/task_pool.h"
#include "kv/block_directory.h"
#include "kv/directory_sweep.h"
#include "kvnode/block_store.h"
#include "net/event_loop.h"

namespace sluice::kvnode {

class DirectoryStore final : public BlockStore {
public:
    struct Options {
        std::filesystem::path path{};
        kv::RetentionTimes times{};
        FaultPoints faults{};
        std::size_t readers = 4;  ///< Threads.
        /// Between two steps of the sweep.
        std::chrono::milliseconds sweep_pace{250};
        std::function<kv::WallTime()> now = std::chrono::system_clock::now;
    };

    /// An error if blocks can't be kept there.
    [[nodiscard]] static Result<std::unique_ptr<DirectoryStore>> open(net::EventLoop& loop,
                                                                      Options options);
    ~DirectoryStore() override;

    void find(ChainPtr chain, Deadline deadline, OnFound on_found) override;
    [[nodiscard]] std::unique_ptr<Load> load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                             Deadline deadline, OnValue on_value,
                                             std::function<void()> on_done) override;
    void store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
               OnStored on_stored) override;
    void touch(ChainPtr chain, std::vector<FoundBlock> blocks) override;
    [[nodiscard]] std::vector<StoreStats> stats() const override;

private:
    class Finding;
    class Loading;
    class Handle;
    /// What the threads see of the store.
    struct Shared {
        kv::BlockDirectory directory;
        std::function<kv::WallTime()> now;
        std::atomic<bool> closing = false;
    };
    struct Pending {
        std::function<void()> finish;  ///< Tells whoever waits.
        net::Timer timer;
    };

    DirectoryStore(net::EventLoop& loop, kv::BlockDirectory directory, Options options);

    /// Any thread: runs `work` on the loop if the store is still there then.
    void to_loop(std::function<void(DirectoryStore&)> work) const;
    std::uint64_t wait_for(Deadline deadline, std::function<void()> finish);
    void finish(std::uint64_t id);
    void timed_out();
    /// False, and counted, if no thread will do it.
    [[nodiscard]] bool start_reading(std::function<void()> work);
    void reading_ended();
    void read_more(const std::shared_ptr<Loading>& loading);
    void has_read(const std::shared_ptr<Loading>& loading, std::size_t index,
                  Result<kv::SharedBytes> value);
    void end(const std::shared_ptr<Loading>& loading);
    void count(const Error& error);
    [[nodiscard]] Stored has_written(std::size_t bytes,
                                     const Result<kv::BlockDirectory::Written>& written);
    void sweep_later(std::chrono::milliseconds pause);
    void sweep();

    net::EventLoop& loop_;
    std::shared_ptr<Shared> shared_;
    std::chrono::milliseconds sweep_pace_;
    /// Locked on the loop's thread only, where the store ends, too.
    std::shared_ptr<DirectoryStore*> alive_ = std::make_shared<DirectoryStore*>(this);
    std::unordered_map<std::uint64_t, Pending> pending_;
    std::uint64_t last_id_ = 0;
    StoreStats stats_;
    std::size_t reading_ = 0;  ///< Tasks of the readers.
    std::size_t bytes_to_write_ = 0;
    std::chrono::steady_clock::time_point writes_pause_until_{};
    std::shared_ptr<kv::DirectorySweep> sweep_;  ///< Of the writing thread.
    net::Timer sweep_timer_;
    TaskPool readers_;
    TaskPool writer_;
};

}  // namespace sluice::kvnode
