#include "kv/ssd_tier.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

#include "base/log.h"

namespace sluice::kv {
namespace {

using Time = SsdTier::Time;

constexpr std::uint64_t kSegmentsMin = 8;
constexpr std::uint64_t kSegmentsWanted = 64;
constexpr std::uint64_t kSegmentBytesMin = 4 * 1024 * 1024;
/// Buffers kept for the next reads.
constexpr std::size_t kIdleBufferBytes = 64 * 1024 * 1024;
/// Smaller values are copied out of their buffer, which is whole sectors and would outweigh them.
constexpr std::size_t kCopiedBytes = 32 * 1024;
constexpr std::size_t kReadsWaiting = 16'384;

std::int64_t to_ms(Time time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::int64_t to_ms(std::optional<Time> expires) { return expires ? to_ms(*expires) : kSsdNever; }

std::optional<Time> to_time(std::int64_t expires_ms) {
    if (expires_ms == kSsdNever) return std::nullopt;
    return Time(std::chrono::milliseconds(expires_ms));
}

Result<void> complete(SsdOptions& options) {
    if (options.segment_bytes == 0) {
        options.segment_bytes = std::clamp<std::uint64_t>(
            options.bytes / kSegmentsWanted / kSsdSectorBytes * kSsdSectorBytes, kSegmentBytesMin,
            limits::kSsdSegmentBytes);
    }
    options.segment_bytes = whole_sectors(options.segment_bytes);
    options.read_depth = std::clamp<std::size_t>(options.read_depth, 1, limits::kSsdReadsInFlight);
    if (options.bytes < kSegmentsMin * options.segment_bytes) {
        return std::unexpected(Error::invalid(
            "an SSD tier needs room for " + std::to_string(kSegmentsMin) + " segments of " +
                std::to_string(options.segment_bytes) + " bytes; give it more",
            options.dir));
    }
    return {};
}

/// 0 if there is no such file.
std::uint64_t file_bytes(const std::string& path) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    return error ? 0 : whole_sectors(bytes);
}

SsdTier::Entry entry_of(const SsdPut& put) {
    return {.name = put.name,
            .value_bytes = put.value.bytes.size(),
            .expires = to_time(put.expires_ms),
            .retention = put.retention};
}

SsdTier::Entry entry_of(const SsdIndex::Place& place) {
    const SsdIndex::Entry& entry = place.entry();
    return {.name = *entry.name,
            .value_bytes = entry.value_bytes,
            .expires = to_time(entry.expires_ms),
            .retention = place.segment->header.retention};
}

/// The checked value in `buffer`, which holds the whole entry.
Result<SharedBytes> value_in(std::shared_ptr<std::byte> buffer, std::size_t bytes,
                             std::uint64_t nonce, std::string_view name) {
    const auto value =
        decode_entry({reinterpret_cast<const char*>(buffer.get()), bytes}, nonce, name);
    if (!value) return std::unexpected(value.error());
    if (value->size() < kCopiedBytes) return SharedBytes::own(std::string(*value));
    return SharedBytes{.bytes = *value, .owner = std::move(buffer)};
}

}  // namespace

SsdTier::SsdTier(SsdOptions options, SsdDirectory directory)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      faults_(options_.faults),
      state_(options_.queue_bytes),
      buffers_(std::make_shared<SsdBuffers>(kIdleBufferBytes)) {
    state_.listened = options_.listener != nullptr;
}

SsdTier::~SsdTier() = default;

Result<std::unique_ptr<SsdTier>> SsdTier::open(SsdOptions options) {
    if (auto completed = complete(options); !completed) return std::unexpected(completed.error());
    auto directory = SsdDirectory::open(options.dir);
    if (!directory) return std::unexpected(directory.error());
    std::unique_ptr<SsdTier> tier(new SsdTier(std::move(options), std::move(*directory)));
    if (auto recovered = tier->recover(); !recovered) return std::unexpected(recovered.error());
    tier->start();
    return tier;
}

Result<void> SsdTier::recover() {
    const auto numbers = directory_.segments();
    if (!numbers) return std::unexpected(numbers.error());
    other_files_.push_back(space_.claim(kSsdSectorBytes));  // The folder's own file.
    const SsdRecovery recovery(
        directory_, options_.direct ? SsdAccess::kDirect : SsdAccess::kCached, faults_, space_);
    for (const std::uint64_t number : *numbers) {
        state_.next_number = std::max(state_.next_number, number + 1);
        auto found = recovery.recover(number);
        if (found) {
            if (*found) take(std::move(**found));
            continue;
        }
        log::warn("SSD tier: a segment is ignored and stays as it is: {}",
                  found.error().to_string());
        ++state_.counts.ignored_segments;
        other_files_.push_back(space_.claim(file_bytes(directory_.segment_path(number))));
    }
    drop_expired();
    return {};
}

void SsdTier::drop_expired() {
    // What was erased stood there until now, so that nothing older came back under its name.
    const std::int64_t now = to_ms(options_.clock());
    SsdIndex::Cursor cursor;
    std::vector<SsdIndex::Place> places;
    for (bool more = true; more;) {
        more = state_.index.walk(cursor, places);
        for (const SsdIndex::Place& place : places)
            if (place.entry().expires_ms <= now) state_.index.kill(place);
    }
}

void SsdTier::take(SsdFoundSegment found) {
    state_.counts.start_bytes_read += found.bytes_read;
    state_.counts.torn_segments += found.torn ? 1 : 0;
    SsdIndex::Segment& segment = state_.index.add_segment(found.header, std::move(found.file));
    std::vector<const SsdLife*> lives(kSsdSegmentEntries);
    for (const SsdLife& life : found.lives) lives[life.slot] = &life;
    for (SsdRecord& record : found.records) {
        state_.next_sequence = std::max(state_.next_sequence, record.sequence + 1);
        if (const SsdLife* life = lives[record.slot]) record.expires_ms = life->expires_ms;
        state_.index.add(segment, record);
    }
}

void SsdTier::start() {
    reader_ = SsdReader::start({.depth = options_.read_depth, .uring = options_.uring}, buffers_,
                               faults_);
    log::info("SSD tier {}: {} entries in {} segments, {} of {} bytes, reads with {}", options_.dir,
              state_.index.entries(), state_.index.segments(), space_.used(), options_.bytes,
              reader_->kind());
    writer_ = std::make_unique<SsdWriter>(state_, directory_, options_, faults_, space_);
}

bool SsdTier::contains(std::string_view name, Time now) const {
    const std::lock_guard lock(state_.mutex);
    if (const auto put = state_.queue.find(name)) return put->expires_ms > to_ms(now);
    const auto place = state_.index.find(name);
    return place && place->entry().expires_ms > to_ms(now);
}

std::optional<SsdTier::Entry> SsdTier::entry(std::string_view name, Time now) const {
    const std::lock_guard lock(state_.mutex);
    if (const auto put = state_.queue.find(name)) {
        if (put->expires_ms <= to_ms(now)) return std::nullopt;
        return entry_of(*put);
    }
    const auto place = state_.index.find(name);
    if (!place || place->entry().expires_ms <= to_ms(now)) return std::nullopt;
    return entry_of(*place);
}

void SsdTier::get(std::string_view name, Time now, GetCallback callback) {
    read_at(name, now, true, std::move(callback));
}

void SsdTier::peek(std::string_view name, Time now, GetCallback callback) {
    read_at(name, now, false, std::move(callback));
}

void SsdTier::read_at(std::string_view name, Time now, bool uses, GetCallback callback) {
    const std::lock_guard lock(state_.mutex);
    if (const auto put = state_.queue.find(name); put && put->expires_ms > to_ms(now)) {
        if (uses) ++state_.counts.hits;
        return reader_->run([value = put->value, callback = std::move(callback)]() mutable {
            callback(std::move(value));
        });
    }
    const auto place = state_.queue.find(name) ? std::nullopt : state_.index.find(name);
    if (!place || place->entry().expires_ms <= to_ms(now)) {
        if (uses) ++state_.counts.misses;
        return reader_->run([callback = std::move(callback)]() mutable {
            callback(std::unexpected(Error::not_found("is not in the SSD tier")));
        });
    }
    if (reader_->waiting() >= kReadsWaiting) {
        ++state_.counts.overloaded;
        return reader_->run([callback = std::move(callback)]() mutable {
            callback(std::unexpected(Error(ErrorCode::kExhausted, "too many reads wait")));
        });
    }
    if (uses) {
        ++state_.counts.hits;
        state_.index.use(*place, to_ms(now));
    }
    read(*place, name, std::move(callback));
}

void SsdTier::read(const SsdIndex::Place& place, std::string_view name, GetCallback callback) {
    const SsdSegmentHeader& header = place.segment->header;
    const std::size_t bytes = place.bytes();
    reader_->read(
        {.file = place.segment->file,
         .offset = place.entry().offset,
         .bytes = bytes,
         .done = [this, bytes, nonce = header.nonce, number = header.number, slot = place.slot,
                  name = std::string(name),
                  callback = std::move(callback)](Result<std::shared_ptr<std::byte>> read) mutable {
             Result<SharedBytes> value = std::unexpected(Error::not_found(""));
             if (read) {
                 value = value_in(std::move(*read), bytes, nonce, name);
             } else {
                 value = std::unexpected(read.error());
             }
             if (!value) quarantine(number, slot, value.error());
             callback(std::move(value));
         }});
}

void SsdTier::quarantine(std::uint64_t number, std::uint32_t slot, const Error& why) {
    if (why.code() == ErrorCode::kUnavailable) return;
    const std::lock_guard lock(state_.mutex);
    const auto place = state_.index.at(number, slot);
    if (!place || place->entry().name == nullptr) return;
    ++(why.code() == ErrorCode::kCorrupt ? state_.counts.corrupt : state_.counts.read_errors);
    state_.end(*place, SsdChange::kDamaged);
    // A dying disk fails by the thousand: its log stays short.
    const std::uint64_t count = state_.counts.corrupt + state_.counts.read_errors;
    if (std::has_single_bit(count)) {
        log::warn("SSD tier {}: {} entries were given up so far, the last because it {}",
                  options_.dir, count, why.to_string());
    }
}

bool SsdTier::put(std::string_view name, SharedBytes value, std::optional<Time> expires,
                  Retention retention) {
    const std::lock_guard lock(state_.mutex);
    const bool storable =
        name.size() <= kSsdNameBytes &&
        SsdSegmentWriter::fits_ever(name.size(), value.bytes.size(), options_.segment_bytes);
    const bool queued = storable && state_.queue.push({.name = std::string(name),
                                                       .value = std::move(value),
                                                       .expires_ms = to_ms(expires),
                                                       .retention = retention});
    if (queued) {
        state_.work.notify_all();
        return true;
    }
    ++(storable ? state_.counts.dropped : state_.counts.refused);
    // The value that it would have replaced isn't its value any more.
    state_.queue.take_back(name);
    if (const auto old = state_.index.find(name)) {
        state_.end(*old, SsdChange::kErased);
        state_.work.notify_all();
    }
    return false;
}

bool SsdTier::erase(std::string_view name) {
    const std::lock_guard lock(state_.mutex);
    const bool waited = state_.queue.take_back(name);
    const auto place = state_.index.find(name);
    if (!place) return waited;
    state_.end(*place, SsdChange::kErased);
    state_.work.notify_all();
    return true;
}

void SsdTier::erase_if(std::move_only_function<bool(std::string_view name)> which,
                       std::move_only_function<void(std::size_t erased)> done) {
    const std::lock_guard lock(state_.mutex);
    state_.erasures.push_back({.which = std::move(which), .done = std::move(done)});
    state_.work.notify_all();
}

bool SsdTier::touch(std::string_view name, Time expires, Time now) {
    const std::lock_guard lock(state_.mutex);
    const std::int64_t until = to_ms(expires);
    if (const auto put = state_.queue.find(name)) {
        if (put->expires_ms <= to_ms(now)) return false;
        put->expires_ms = std::max(put->expires_ms, until);
        return true;
    }
    const auto place = state_.index.find(name);
    if (!place || place->entry().expires_ms <= to_ms(now)) return false;
    state_.index.use(*place, to_ms(now), until);
    if (state_.index.dirty()) state_.work.notify_all();
    return true;
}

bool SsdTier::expire(std::string_view name, std::optional<Time> expires) {
    const std::lock_guard lock(state_.mutex);
    if (const auto put = state_.queue.find(name)) {
        put->expires_ms = to_ms(expires);
        return true;
    }
    const auto place = state_.index.find(name);
    if (!place) return false;
    state_.index.set_expiry(*place, to_ms(expires));
    state_.work.notify_all();
    return true;
}

void SsdTier::sync(std::move_only_function<void(Result<void>)> done) {
    const std::lock_guard lock(state_.mutex);
    state_.syncs.push_back({.after = state_.queue.pushed(), .done = std::move(done)});
    state_.work.notify_all();
}

void SsdTier::for_each(const std::function<void(const Entry&)>& visit) const {
    std::vector<Entry> entries;
    {
        const std::lock_guard lock(state_.mutex);
        state_.queue.for_each([&](const SsdPut& put) { entries.push_back(entry_of(put)); });
    }
    SsdIndex::Cursor cursor;
    std::vector<SsdIndex::Place> places;
    for (bool more = true; more;) {
        for (const Entry& entry : std::exchange(entries, {})) visit(entry);
        const std::lock_guard lock(state_.mutex);
        more = state_.index.walk(cursor, places);
        for (const SsdIndex::Place& place : places)
            if (!state_.queue.find(*place.entry().name)) entries.push_back(entry_of(place));
    }
    for (const Entry& entry : entries) visit(entry);
}

bool SsdTier::scan(ScanCursor& cursor, const std::function<void(const Entry&)>& visit) const {
    std::vector<Entry> entries;
    bool more = false;
    {
        const std::lock_guard lock(state_.mutex);
        SsdIndex::Cursor at{.number = cursor.segment, .slot = cursor.slot};
        std::vector<SsdIndex::Place> places;
        more = state_.index.walk(at, places);
        for (const SsdIndex::Place& place : places)
            if (!state_.queue.find(*place.entry().name)) entries.push_back(entry_of(place));
        // What is written while the scan goes on lies behind the cursor or waits still.
        if (!more)
            state_.queue.for_each([&](const SsdPut& put) { entries.push_back(entry_of(put)); });
        cursor = {.segment = at.number, .slot = at.slot};
    }
    for (const Entry& entry : entries) visit(entry);
    return more;
}

SsdStats SsdTier::stats() const {
    const std::lock_guard lock(state_.mutex);
    SsdStats stats = state_.counts;
    stats.bytes = space_.used();
    stats.bytes_max = writer_->bytes_max();
    for (const Retention retention : {Retention::kAgent, Retention::kChat, Retention::kNone}) {
        stats.live_bytes[static_cast<std::size_t>(retention)] = state_.index.live_bytes(retention);
    }
    stats.entries = state_.index.entries();
    stats.segments = state_.index.segments();
    stats.queue_bytes = state_.queue.bytes();
    stats.uring = reader_->kind() == "io_uring";
    return stats;
}

void SsdTier::set_faults(const FaultPoints& faults) { faults_.set(faults); }

}  // namespace sluice::kv
