#pragma once

// Where rows go: add() from the event loop, a thread of its own brings them into the database in
// batches, one transaction each.
//
// What it promises:
// - add() never waits for a disk and never fails.
// - A failure's row, once add() has returned, survives this process, however it ends: it waits in a
//   mapped ring (failure_journal.h) until the database has it, and is then there exactly once.
// - Counts are exact. If rows come faster than they can be written, or can't be written at all,
//   memory stays bounded and rows of successes stand for others with their weight (row_queue.h).
//   Failures do so only once the ring, too, is full.
// - A full disk is waited out; a damaged database is renamed to "records.db.corrupt" and a new one
//   begun. Both are told in one log line when they begin, and in stats().
// - No wait uses the wall clock: one that jumps stalls nothing.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "record/failure_journal.h"
#include "record/record_database.h"
#include "record/request_row.h"
#include "record/row_queue.h"
#include "record/version_manifest.h"

namespace sluice::record {

struct RecordStoreOptions {
    std::string folder;  ///< Made if it is not there: records.db, failures.journal.
    std::chrono::milliseconds retention_age = std::chrono::hours(24 * 30);
    std::uint64_t retention_bytes = std::uint64_t{4} << 30U;
    /// How long the first row of a batch waits for others.
    std::chrono::milliseconds batch_delay{100};
    /// Between two tries to write what could not be written.
    std::chrono::milliseconds retry_pause{1'000};
    std::size_t queue_rows = limits::kRecordQueueRows;
    std::size_t journal_bytes = limits::kRecordJournalBytes;
    /// Milliseconds since 1970; for retention only.
    std::function<std::int64_t()> wall_clock_ms;
};

struct RecordStats {
    std::uint64_t added = 0;             ///< Rows given to add().
    std::uint64_t written = 0;           ///< Rows in the database.
    std::uint64_t joined_successes = 0;  ///< Rows that only count in another row's weight.
    std::uint64_t joined_failures = 0;
    std::uint64_t waiting = 0;        ///< Rows in memory.
    std::uint64_t journal_bytes = 0;  ///< Failures in the ring.
    std::uint64_t write_errors = 0;   ///< Batches that had to be tried again.
    std::uint64_t set_aside = 0;      ///< Damaged databases.
    std::uint64_t skipped = 0;        ///< Journal entries that could not be read back.
};

class RecordStore {
public:
    /// Fails if the folder can't be written to, another process has it, or a newer Sluice wrote it.
    /// A full disk or a damaged file is no failure.
    [[nodiscard]] static Result<std::unique_ptr<RecordStore>> open(RecordStoreOptions options);

    /// Writes what waits. What can't be written now stays in the ring if it is a failure.
    ~RecordStore();
    RecordStore(const RecordStore&) = delete;
    RecordStore& operator=(const RecordStore&) = delete;

    void add(RequestRow row);
    /// Makes a fingerprint known. Cheap if it is already.
    void remember(const std::string& fingerprint, const VersionManifest& manifest);
    /// What a pool costs from now on, in any one currency an hour.
    void set_price(const std::string& pool, double price_hour);

    /// Waits until everything added before is in the database; false if that takes longer.
    [[nodiscard]] bool flush(std::chrono::milliseconds patience);

    [[nodiscard]] RecordStats stats() const;
    [[nodiscard]] const std::string& database_path() const { return path_; }

private:
    struct Batch {
        std::vector<RequestRow> rows;
        FailureJournal::Position journal_end = 0;
        std::uint64_t ticket = 0;  ///< Of the last thing in it.
    };

    RecordStore(RecordStoreOptions options, FailureJournal journal);
    [[nodiscard]] bool append(const std::string& text);
    [[nodiscard]] bool append_price(const std::string& pool, double price_hour);
    void run();
    [[nodiscard]] bool wait_for_work();
    void collect(Batch& batch);
    [[nodiscard]] Result<void> write(const Batch& batch);
    [[nodiscard]] Result<void> write_journal(FailureJournal::Position end);
    [[nodiscard]] Result<void> write_entry(const std::string& text);
    void settle(Batch& batch);
    void on_write_error(const Error& error);
    void set_database_aside();
    void retain();

    RecordStoreOptions options_;
    std::string path_;
    FailureJournal journal_;  ///< Appended to under mutex_; read and released by the thread.

    mutable std::mutex mutex_;
    std::condition_variable wake_;     ///< The thread: there is work.
    std::condition_variable settled_;  ///< flush(): a batch is written.
    RowQueue queue_;
    RecordStats stats_;
    std::vector<std::string> known_;  ///< Fingerprints.
    std::map<std::string, double> prices_;
    std::uint64_t tickets_ = 0;  ///< Things added.
    std::uint64_t settled_ticket_ = 0;
    std::uint32_t flushes_ = 0;  ///< That wait now.
    bool stopping_ = false;

    // The thread's own.
    std::optional<RecordDatabase> database_;
    bool failing_ = false;
    std::uint64_t rows_in_transaction_ = 0;
    std::chrono::steady_clock::time_point next_retention_;
    std::thread thread_;
};

}  // namespace sluice::record
