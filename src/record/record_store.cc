#include "record/record_store.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "port/json_writer.h"
#include "record/json_text.h"

namespace sluice::record {
namespace {

constexpr std::chrono::minutes kRetentionPause{1};
constexpr std::string_view kManifestEntry = R"({"manifest":)";
constexpr std::string_view kPriceEntry = R"({"price":)";

std::int64_t system_clock_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// A disk that is full at the start may have room later; then the ring lives in memory until the
// next start, and only a killed process loses what is in it.
Result<FailureJournal> open_journal(const RecordStoreOptions& options) {
    auto journal =
        FailureJournal::open(options.folder + "/failures.journal", options.journal_bytes);
    if (journal || journal.error().code() != ErrorCode::kExhausted) return journal;
    log::error("{}; until the next start a killed gateway may lose records of failures",
               journal.error().to_string());
    return FailureJournal::in_memory(options.journal_bytes);
}

bool can_be_waited_out(const Error& error) {
    return error.code() == ErrorCode::kExhausted || error.code() == ErrorCode::kUnavailable ||
           error.code() == ErrorCode::kIo;
}

}  // namespace

Result<std::unique_ptr<RecordStore>> RecordStore::open(RecordStoreOptions options) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) {
        return std::unexpected(
            Error::io("making the folder for records", error.value(), options.folder));
    }
    if (!options.wall_clock_ms) options.wall_clock_ms = system_clock_ms;
    auto journal = open_journal(options);
    if (!journal) return std::unexpected(journal.error());
    std::unique_ptr<RecordStore> store(new RecordStore(std::move(options), std::move(*journal)));
    auto database = RecordDatabase::open(store->path_);
    if (!database && database.error().code() == ErrorCode::kCorrupt) {
        store->set_database_aside();
        database = RecordDatabase::open(store->path_);
    }
    if (database) {
        store->database_.emplace(std::move(*database));
    } else if (can_be_waited_out(database.error())) {
        store->on_write_error(database.error());
    } else {
        return std::unexpected(database.error());
    }
    store->thread_ = std::thread([raw = store.get()] { raw->run(); });
    return store;
}

RecordStore::RecordStore(RecordStoreOptions options, FailureJournal journal)
    : options_(std::move(options)),
      path_(options_.folder + "/records.db"),
      journal_(std::move(journal)),
      queue_(options_.queue_rows),
      // What an earlier process left is work, too.
      tickets_(journal_.begin() == journal_.end() ? 0 : 1) {}

RecordStore::~RecordStore() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

// ---- Any thread -----------------------------------------------------------------------------------

void RecordStore::add(RequestRow row) {
    const bool failure = is_failure(row.outcome);
    const std::string text = failure ? to_json(row) : std::string();
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = tickets_++ == settled_ticket_;
        ++stats_.added;
        if (failure && journal_.append(text)) {
            // It is safe.
        } else if (!queue_.push(std::move(row))) {
            ++(failure ? stats_.joined_failures : stats_.joined_successes);
        }
    }
    if (first) wake_.notify_one();
}

bool RecordStore::append(const std::string& text) {
    if (!journal_.append(text)) return false;
    ++tickets_;
    return true;
}

void RecordStore::remember(const std::string& fingerprint, const VersionManifest& manifest) {
    {
        const std::lock_guard lock(mutex_);
        if (std::ranges::find(known_, fingerprint) != known_.end()) return;
        // If there is no room now, the next leg tries again.
        if (!append(std::string(kManifestEntry) + to_json(manifest) + "}")) return;
        if (known_.size() == limits::kRecordManifests) known_.clear();
        known_.push_back(fingerprint);
    }
    wake_.notify_one();
}

void RecordStore::set_price(const std::string& pool, double price_hour) {
    {
        const std::lock_guard lock(mutex_);
        prices_[pool] = price_hour;
        if (!append_price(pool, price_hour)) log::error("the price of {} is not recorded", pool);
    }
    wake_.notify_one();
}

bool RecordStore::append_price(const std::string& pool, double price_hour) {
    std::string text(kPriceEntry);
    port::JsonWriter writer(text);
    writer.begin_object();
    writer.field("pool", pool);
    writer.field("since", options_.wall_clock_ms());
    writer.field("price_hour", price_hour);
    writer.end_object();
    return append(text + "}");
}

bool RecordStore::flush(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = tickets_;
    ++flushes_;
    wake_.notify_one();
    const bool done = settled_.wait_for(lock, patience, [&] { return settled_ticket_ >= ticket; });
    --flushes_;
    return done;
}

RecordStats RecordStore::stats() const {
    const std::lock_guard lock(mutex_);
    RecordStats stats = stats_;
    stats.waiting = queue_.size();
    stats.journal_bytes = journal_.end() - journal_.begin();
    return stats;
}

// ---- The thread -----------------------------------------------------------------------------------

void RecordStore::run() {
    retain();
    Batch batch;
    bool last = false;
    while (!last) {
        last = !wait_for_work();
        collect(batch);
        auto written = write(batch);
        if (!written && written.error().code() == ErrorCode::kCorrupt) {
            set_database_aside();
            written = write(batch);
        }
        if (written) {
            settle(batch);
        } else {
            on_write_error(written.error());
            if (last && !batch.rows.empty())
                log::error("{} records of successes could not be written", batch.rows.size());
        }
        if (!last) retain();
    }
}

// False if it is time to end.
bool RecordStore::wait_for_work() {
    std::unique_lock lock(mutex_);
    const auto urgent = [this] { return stopping_ || (flushes_ > 0 && !failing_); };
    if (failing_) {
        wake_.wait_for(lock, options_.retry_pause, [this] { return stopping_; });
        return !stopping_;
    }
    wake_.wait_until(lock, next_retention_,
                     [&] { return stopping_ || tickets_ != settled_ticket_; });
    if (tickets_ != settled_ticket_) wake_.wait_for(lock, options_.batch_delay, urgent);
    return !stopping_;
}

// A batch that could not be written stays as it is; only then the queue fills up.
void RecordStore::collect(Batch& batch) {
    const std::lock_guard lock(mutex_);
    if (!batch.rows.empty() && !stopping_) return;
    std::ranges::move(queue_.take(), std::back_inserter(batch.rows));
    batch.journal_end = journal_.end();
    batch.ticket = tickets_;
}

Result<void> RecordStore::write(const Batch& batch) {
    if (!database_) {
        auto opened = RecordDatabase::open(path_);
        if (!opened) return std::unexpected(opened.error());
        database_.emplace(std::move(*opened));
    }
    if (batch.rows.empty() && batch.journal_end == journal_.begin()) return {};
    const auto begun = database_->begin();
    if (!begun) return begun;
    rows_in_transaction_ = batch.rows.size();
    auto done = write_journal(batch.journal_end);
    for (auto row = batch.rows.begin(); done && row != batch.rows.end(); ++row)
        done = database_->insert(*row, to_json(*row));
    if (done) done = database_->commit();
    if (!done) database_->rollback();
    return done;
}

Result<void> RecordStore::write_journal(FailureJournal::Position end) {
    const auto mark = database_->journal_mark();
    if (!mark) return std::unexpected(mark.error());
    FailureJournal::Position position = journal_.begin();
    // A process was killed after it committed and before it released.
    if (mark->id == journal_.id()) position = std::clamp(mark->position, position, end);
    while (position < end) {
        const auto entry = journal_.read(position);
        if (!entry) {
            log::error("{} bytes of the record journal are damaged and lost", end - position);
            const std::lock_guard lock(mutex_);
            ++stats_.skipped;
            break;
        }
        if (const auto done = write_entry(entry->text); !done) return done;
        position = entry->next;
    }
    return database_->set_journal_mark({.id = journal_.id(), .position = end});
}

Result<void> RecordStore::write_entry(const std::string& text) {
    if (text.starts_with(kManifestEntry)) {
        const auto manifest = parse_version_manifest(std::string_view(text).substr(
            kManifestEntry.size(), text.size() - kManifestEntry.size() - 1));
        if (manifest) return database_->insert_manifest(digest(*manifest), to_json(*manifest));
    } else if (text.starts_with(kPriceEntry)) {
        const auto entry = parse_object(text);
        const auto* const price = entry ? object_field(*entry, "price") : nullptr;
        if (price != nullptr) {
            return database_->insert_price(text_field(*price, "pool"),
                                           static_cast<std::int64_t>(count_field(*price, "since")),
                                           number_field(*price, "price_hour").value_or(0.0));
        }
    } else if (const auto parsed = parse_row(text)) {
        ++rows_in_transaction_;
        return database_->insert(parsed->row, text);
    }
    log::error("an entry of the record journal can't be read: {}", text.substr(0, 200));
    const std::lock_guard lock(mutex_);
    ++stats_.skipped;
    return {};
}

void RecordStore::settle(Batch& batch) {
    if (std::exchange(failing_, false)) log::info("records are written again");
    {
        const std::lock_guard lock(mutex_);
        journal_.release(batch.journal_end);
        settled_ticket_ = batch.ticket;
        stats_.written += std::exchange(rows_in_transaction_, 0);
    }
    settled_.notify_all();
    batch.rows.clear();
}

void RecordStore::on_write_error(const Error& error) {
    if (!std::exchange(failing_, true)) {
        log::error("records can't be written and wait in memory: {}", error.to_string());
    }
    database_.reset();  // It may have been the connection; a new one starts clean.
    const std::lock_guard lock(mutex_);
    ++stats_.write_errors;
}

void RecordStore::set_database_aside() {
    database_.reset();
    const std::string aside = path_ + ".corrupt";
    log::error("{} is damaged; it is now {}, and a new one begins", path_, aside);
    for (const char* const part : {"-wal", "-shm", ""})
        std::rename((path_ + part).c_str(), (aside + part).c_str());
    const std::lock_guard lock(mutex_);
    ++stats_.set_aside;
    // The new one knows nothing yet.
    known_.clear();
    for (const auto& [pool, price_hour] : prices_) (void)append_price(pool, price_hour);
}

void RecordStore::retain() {
    const auto now = std::chrono::steady_clock::now();
    if (!database_ || failing_ || now < next_retention_) return;
    const auto more = database_->retain(options_.wall_clock_ms() - options_.retention_age.count(),
                                        options_.retention_bytes);
    if (!more) log::warn("old records can't be deleted: {}", more.error().to_string());
    next_retention_ = more && *more ? now : now + kRetentionPause;
}

}  // namespace sluice::record
