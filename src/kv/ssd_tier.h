#pragma once

// The SSD tier: values by name in append-only segments, found again after any end of the process.
//
// It may lose a value - the disk is full, or failed, or others need the room - but never serves a wrong
// one: name, value and expiry are checked on every read, and what fails is a miss, once and for good.
// It never makes anybody wait: puts are queued or dropped, reads are called back. All its files
// together stay below Options::bytes, at any time.
//
// What survives: once `sync` has called back, every put before it, also a power cut; without it, what was
// written Options::sync_every ago. An erasure survives the process as soon as the thread that writes has
// seen it (`sync` says when), a longer life likewise, to the minute. Of a directory that another program
// or format wrote nothing is touched.
//
// Threads: any. Callbacks run on the tier's threads, never from inside a call, and must not block. All
// have been called when the destructor returns.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/retention.h"
#include "kv/shared_bytes.h"
#include "kv/ssd_options.h"
#include "kv/ssd_reader.h"
#include "kv/ssd_recovery.h"
#include "kv/ssd_writer.h"

namespace sluice::kv {

class SsdTier {
public:
    using Time = std::chrono::system_clock::time_point;
    using GetCallback = std::move_only_function<void(Result<SharedBytes>)>;

    /// What one entry is, for `for_each`.
    struct Entry {
        std::string name;
        std::uint64_t value_bytes = 0;
        std::optional<Time> expires;
        Retention retention = Retention::kNone;
    };

    /// Blocks while it reads the footers in `options.dir` and searches segments that have none.
    /// Errors: `kInvalid`: too few bytes, or a directory with other things in it; `kUnavailable`: another
    /// process uses it; `kUnsupported`: of another format; `kIo`.
    [[nodiscard]] static Result<std::unique_ptr<SsdTier>> open(SsdOptions options);
    ~SsdTier();
    SsdTier(const SsdTier&) = delete;
    SsdTier& operator=(const SsdTier&) = delete;

    [[nodiscard]] bool contains(std::string_view name, Time now) const;
    [[nodiscard]] std::optional<Entry> entry(std::string_view name, Time now) const;

    /// Calls back once. Errors: `kNotFound`; `kCorrupt`: it failed its checks and is gone; `kIo`: the
    /// disk's; `kExhausted`: too many reads wait; `kUnavailable`: the tier ends.
    void get(std::string_view name, Time now, GetCallback callback);
    /// Reads it without using it: no hit is counted, and it goes no later for it.
    void peek(std::string_view name, Time now, GetCallback callback);

    /// False: dropped, because the queue is full or the value can't be stored at all; then there is no
    /// value of that name any more. Replaces one that is there. Values of less than a sector take one.
    bool put(std::string_view name, SharedBytes value, std::optional<Time> expires,
             Retention retention);

    /// Whether it was there.
    bool erase(std::string_view name);
    /// Erases what `which` says true to, a segment at a time on the thread that writes; `which` must
    /// be quick. Then calls back with how many there were.
    void erase_if(std::move_only_function<bool(std::string_view name)> which,
                  std::move_only_function<void(std::size_t erased)> done);

    /// It lives until `expires`, if that is at least a minute longer than before, and counts as used.
    /// Whether it was there.
    bool touch(std::string_view name, Time expires, Time now);
    /// It lives until `expires`, however long that is. Whether it was there.
    bool expire(std::string_view name, std::optional<Time> expires);

    /// Calls back when every put before it is on disk for good, and every erasure; an error if not.
    void sync(std::move_only_function<void(Result<void>)> done);

    /// All entries on disk and in the queue, a segment at a time; what changes meanwhile may be missing.
    void for_each(const std::function<void(const Entry&)>& visit) const;

    /// Where a scan is; between two steps the tier may change.
    struct ScanCursor {
        std::uint64_t segment = 0;
        std::uint32_t slot = 0;
    };
    /// A bounded number of entries from `cursor` on. False: these were the last. What is here during a
    /// whole scan is met at least once.
    [[nodiscard]] bool scan(ScanCursor& cursor,
                            const std::function<void(const Entry&)>& visit) const;

    [[nodiscard]] SsdStats stats() const;

    /// Plants other faults from now on.
    void set_faults(const FaultPoints& faults);

private:
    SsdTier(SsdOptions options, SsdDirectory directory);
    [[nodiscard]] Result<void> recover();
    void take(SsdFoundSegment found);
    void drop_expired();
    void start();
    void read_at(std::string_view name, Time now, bool uses, GetCallback callback);
    void read(const SsdIndex::Place& place, std::string_view name, GetCallback callback);
    void quarantine(std::uint64_t number, std::uint32_t slot, const Error& why);

    const SsdOptions options_;
    const SsdDirectory directory_;
    SsdFaults faults_;
    SsdSpace space_;
    mutable SsdState state_;
    std::shared_ptr<SsdBuffers> buffers_;
    std::vector<SsdSpace::Claim> other_files_;  ///< They take room, too.
    std::unique_ptr<SsdReader> reader_;
    std::unique_ptr<SsdWriter> writer_;  ///< Ends first, while reads can still let go of files.
};

}  // namespace sluice::kv
