#include "kvnode/directory_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/limits.h"
#include "base/secure_random.h"

namespace sluice::kvnode {
namespace {

using Clock = std::chrono::steady_clock;
using Written = kv::BlockDirectory::Written;

/// Tasks that wait for a thread.
constexpr std::size_t kTasks = limits::kKvNodePipeline;
/// Blocks of one load that are read or wait for a thread; also what it may hold in memory.
constexpr std::size_t kReadAhead = 8;
/// A look-up that has missed so many blocks in a row looks no further: each costs a trip.
constexpr std::size_t kMissesInARow = 64;
/// Values that wait to be written.
constexpr std::size_t kWriteBytes = limits::kSsdQueueBytes;
constexpr std::chrono::seconds kWriteTime{30};
/// After an error nothing is written for so long: a full file system stays full for a while.
constexpr std::chrono::seconds kWritePause{1};
/// Between the ends and beginnings of rounds through all folders.
constexpr std::chrono::minutes kSweepPause{1};

}  // namespace

/// A look-up, shared by the loop and the thread that works on it. The answer can be taken at any time.
class DirectoryStore::Finding {
public:
    Finding(ChainPtr chain, Deadline deadline)
        : chain_(std::move(chain)), deadline_(deadline), found_(chain_->keys.size()) {}

    void run(const Shared& shared) {
        const kv::WallTime now = shared.now();
        std::size_t misses = 0;
        for (std::size_t i = 0; i < chain_->keys.size() && misses < kMissesInARow; ++i) {
            if (shared.closing || Clock::now() >= deadline_) return;
            ++misses;
            for (const kv::Retention retention : lookup_order(chain_->retention)) {
                const FoundBlock block{.index = i, .retention = retention};
                if (!shared.directory.contains(name_of(*chain_, block), now)) continue;
                const std::lock_guard lock(mutex_);
                found_[i] = retention;
                misses = 0;
                break;
            }
        }
    }

    [[nodiscard]] std::vector<std::optional<kv::Retention>> found() {
        const std::lock_guard lock(mutex_);
        return found_;
    }

private:
    const ChainPtr chain_;
    const Deadline deadline_;
    std::mutex mutex_;
    std::vector<std::optional<kv::Retention>> found_;
};

class DirectoryStore::Loading {
public:
    Loading(ChainPtr of, std::vector<FoundBlock> wanted, OnValue value, std::function<void()> done)
        : chain(std::move(of)),
          blocks(std::move(wanted)),
          on_value(std::move(value)),
          on_done(std::move(done)) {}

    const ChainPtr chain;
    const std::vector<FoundBlock> blocks;
    OnValue on_value;
    std::function<void()> on_done;
    const Clock::time_point started = Clock::now();
    std::size_t next = 0;     ///< The first one that no thread has been asked for.
    std::size_t reading = 0;  ///< Asked for and not there yet.
    std::size_t bytes = 0;
    net::Timer timer;
    std::atomic<bool> over = false;  ///< Done, late or cancelled.
};

class DirectoryStore::Handle final : public Load {
public:
    explicit Handle(std::shared_ptr<Loading> loading) : loading_(std::move(loading)) {}
    ~Handle() override {
        loading_->over = true;
        loading_->timer.cancel();
    }

private:
    std::shared_ptr<Loading> loading_;
};

Result<std::unique_ptr<DirectoryStore>> DirectoryStore::open(net::EventLoop& loop,
                                                             Options options) {
    auto directory = kv::BlockDirectory::open(options.path, options.times, options.faults);
    if (!directory) return std::unexpected(directory.error());
    return std::unique_ptr<DirectoryStore>(
        new DirectoryStore(loop, *std::move(directory), std::move(options)));
}

DirectoryStore::DirectoryStore(net::EventLoop& loop, kv::BlockDirectory directory, Options options)
    : loop_(loop),
      shared_(std::make_shared<Shared>(std::move(directory), std::move(options.now))),
      sweep_pace_(options.sweep_pace),
      readers_(options.readers, kTasks),
      writer_(1, kTasks) {
    stats_.where = "dir://" + options.path.string();
    stats_.up = true;
    std::uint8_t first = 0;
    fill_secure_random(std::span(&first, 1));
    sweep_ = std::make_shared<kv::DirectorySweep>(
        kv::DirectorySweep::Options{.root = options.path, .times = options.times, .first = first});
    sweep_later(sweep_pace_);
}

DirectoryStore::~DirectoryStore() { shared_->closing = true; }

void DirectoryStore::to_loop(std::function<void(DirectoryStore&)> work) const {
    loop_.post([weak = std::weak_ptr(alive_), work = std::move(work)] {
        if (const auto store = weak.lock()) work(**store);
    });
}

std::uint64_t DirectoryStore::wait_for(Deadline deadline, std::function<void()> finish) {
    const std::uint64_t id = ++last_id_;
    pending_.emplace(id, Pending{.finish = std::move(finish),
                                 .timer = loop_.call_after(deadline - Clock::now(), [this, id] {
                                     timed_out();
                                     this->finish(id);
                                 })});
    return id;
}

void DirectoryStore::finish(std::uint64_t id) {
    const auto waiting = pending_.extract(id);
    if (waiting) waiting.mapped().finish();
}

void DirectoryStore::timed_out() {
    ++stats_.timeouts;
    // Only what is being read can come back and say that the file system is there again.
    stats_.up = reading_ == 0;
}

bool DirectoryStore::start_reading(std::function<void()> work) {
    if (!stats_.up || !readers_.submit(std::move(work))) {
        ++stats_.refused;
        return false;
    }
    ++reading_;
    return true;
}

void DirectoryStore::reading_ended() {
    --reading_;
    stats_.up = true;
}

void DirectoryStore::find(ChainPtr chain, Deadline deadline, OnFound on_found) {
    auto finding = std::make_shared<Finding>(std::move(chain), deadline);
    const std::uint64_t id = wait_for(
        deadline, [finding, on_found = std::move(on_found)] { on_found(finding->found()); });
    auto work = [this, finding, id, shared = shared_, started = Clock::now()] {
        finding->run(*shared);
        to_loop([id, started](DirectoryStore& store) {
            store.reading_ended();
            store.stats_.add_round_trip(Clock::now() - started);
            store.finish(id);
        });
    };
    if (!start_reading(std::move(work))) to_loop([id](DirectoryStore& store) { store.finish(id); });
}

std::unique_ptr<Load> DirectoryStore::load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                           Deadline deadline, OnValue on_value,
                                           std::function<void()> on_done) {
    auto loading = std::make_shared<Loading>(std::move(chain), std::move(blocks),
                                             std::move(on_value), std::move(on_done));
    loading->timer = loop_.call_after(
        deadline - Clock::now(), [weak = std::weak_ptr(loading), alive = std::weak_ptr(alive_)] {
            const auto late = weak.lock();
            const auto store = alive.lock();
            if (late == nullptr || store == nullptr || late->over) return;
            (*store)->timed_out();
            (*store)->end(late);
        });
    // Later, because what is refused ends at once.
    to_loop([loading](DirectoryStore& store) { store.read_more(loading); });
    return std::make_unique<Handle>(std::move(loading));
}

void DirectoryStore::read_more(const std::shared_ptr<Loading>& loading) {
    while (!loading->over && loading->reading < kReadAhead &&
           loading->next < loading->blocks.size()) {
        const FoundBlock block = loading->blocks[loading->next++];
        auto work = [this, loading, block, shared = shared_] {
            auto value = Result<kv::SharedBytes>(std::unexpected(Error::not_found("not wanted")));
            if (!loading->over && !shared->closing)
                value = shared->directory.read(name_of(*loading->chain, block), shared->now());
            to_loop([loading, block, value = std::move(value)](DirectoryStore& store) mutable {
                store.has_read(loading, block.index, std::move(value));
            });
        };
        if (start_reading(std::move(work))) ++loading->reading;
    }
    if (!loading->over && loading->reading == 0) end(loading);
}

void DirectoryStore::has_read(const std::shared_ptr<Loading>& loading, std::size_t index,
                              Result<kv::SharedBytes> value) {
    reading_ended();
    --loading->reading;
    if (loading->over) return;
    if (value) {
        ++stats_.hits;
        stats_.bytes_read += value->bytes.size();
        loading->bytes += value->bytes.size();
        loading->on_value(index, *std::move(value));
    } else {
        count(value.error());
    }
    read_more(loading);
}

void DirectoryStore::count(const Error& error) {
    if (error.code() == ErrorCode::kCorrupt) {
        ++stats_.corrupt;
    } else if (error.code() == ErrorCode::kIo) {
        ++stats_.errors;
    } else {
        ++stats_.misses;
    }
}

void DirectoryStore::end(const std::shared_ptr<Loading>& loading) {
    loading->over = true;
    loading->timer.cancel();
    if (loading->bytes > 0) stats_.add_load(loading->bytes, Clock::now() - loading->started);
    const auto done = std::exchange(loading->on_done, nullptr);
    done();
}

void DirectoryStore::store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
                           OnStored on_stored) {
    const std::size_t bytes = value.bytes.size();
    const auto now = Clock::now();
    const auto outcome = std::make_shared<Stored>(Stored::kFailed);
    const std::uint64_t id = wait_for(
        now + kWriteTime, [outcome, on_stored = std::move(on_stored)] { on_stored(*outcome); });
    const FoundBlock block{.index = index, .retention = chain->retention};
    const auto work = [this, chain = std::move(chain), block, value = std::move(value), outcome, id,
                       shared = shared_] {
        if (shared->closing) return;
        const auto written =
            shared->directory.write(name_of(*chain, block), value.bytes, shared->now());
        to_loop([id, written, outcome, bytes = value.bytes.size()](DirectoryStore& store) {
            *outcome = store.has_written(bytes, written);
            store.finish(id);
        });
    };
    const bool wanted = block.retention != kv::Retention::kNone;
    const bool room = bytes_to_write_ + bytes <= kWriteBytes && now >= writes_pause_until_;
    if (wanted && room && writer_.submit(work)) {
        bytes_to_write_ += bytes;
        return;
    }
    if (wanted) ++stats_.refused;
    to_loop([id](DirectoryStore& store) { store.finish(id); });
}

Stored DirectoryStore::has_written(std::size_t bytes, const Result<Written>& written) {
    bytes_to_write_ -= bytes;
    if (!written) {
        ++stats_.errors;
        writes_pause_until_ = Clock::now() + kWritePause;
        return Stored::kFailed;
    }
    if (*written == Written::kWasThere) return Stored::kWasThere;
    if (*written == Written::kDiffers) {
        ++stats_.differs;
        return Stored::kDiffers;
    }
    ++stats_.stored;
    stats_.bytes_written += bytes;
    return Stored::kStored;
}

void DirectoryStore::touch(ChainPtr chain, std::vector<FoundBlock> blocks) {
    const bool taken = writer_.submit(
        [chain = std::move(chain), blocks = std::move(blocks), shared = shared_]() mutable {
            const kv::WallTime now = shared->now();
            std::ranges::sort(blocks, std::greater<>(), &FoundBlock::index);
            for (const FoundBlock& block : blocks) {
                if (shared->closing) return;
                shared->directory.touch(name_of(*chain, block), now);
            }
        });
    if (!taken) ++stats_.refused;
}

void DirectoryStore::sweep_later(std::chrono::milliseconds pause) {
    sweep_timer_ = loop_.call_after(pause, [this] { sweep(); });
}

void DirectoryStore::sweep() {
    const bool taken = writer_.submit([this, sweep = sweep_, shared = shared_] {
        const bool done = sweep->step(shared->now()) == kv::DirectorySweep::Step::kDone;
        to_loop([done](DirectoryStore& store) {
            store.sweep_later(done ? kSweepPause : store.sweep_pace_);
        });
    });
    if (!taken) sweep_later(kSweepPause);
}

std::vector<StoreStats> DirectoryStore::stats() const { return {stats_}; }

}  // namespace sluice::kvnode
