#include "kv/ssd_appender.h"

#include <utility>

#include "base/log.h"

namespace sluice::kv {

bool SsdAppender::needs_segment(const SsdItem& item) const {
    const Open& open = open_[static_cast<std::size_t>(item.retention)];
    return open.writer == nullptr || !open.writer->fits(item.name.size(), item.value.size());
}

Result<void> SsdAppender::open_segment(Retention retention) {
    Open& next = open(retention);
    if (next.writer != nullptr) seal(next);
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(state_.mutex);
        number = state_.next_number++;
    }
    auto writer = SsdSegmentWriter::create(directory_, number, retention, files_, faults_, space_);
    if (!writer) return std::unexpected(writer.error());
    next.writer = std::move(*writer);
    const std::lock_guard lock(state_.mutex);
    state_.index.add_segment(next.writer->header(), next.writer->file()).open = true;
    return {};
}

Result<void> SsdAppender::append(const SsdItem& item) {
    Open& to = open(item.retention);
    std::uint64_t sequence = 0;
    {
        const std::lock_guard lock(state_.mutex);
        sequence = state_.next_sequence++;
    }
    auto record = to.writer->append(item.name, item.value, item.expires_ms, sequence);
    if (!record) {
        to.staged.push_back({.record = {}, .put = item.put, .from = 0, .slot = 0});
        return give_up(to, record.error());
    }
    to.staged.push_back(
        {.record = std::move(*record), .put = item.put, .from = item.from, .slot = item.slot});
    return {};
}

Result<void> SsdAppender::flush() {
    Result<void> result;
    for (Open& open : open_)
        if (auto flushed = flush(open); !flushed) result = flushed;
    return result;
}

Result<void> SsdAppender::flush(Open& open) {
    if (open.staged.empty()) return {};
    if (auto flushed = open.writer->flush(); !flushed) return give_up(open, flushed.error());
    publish(open);
    return {};
}

void SsdAppender::publish(Open& open) {
    const std::lock_guard lock(state_.mutex);
    SsdIndex::Segment* segment = state_.index.segment(open.writer->header().number);
    for (const Staged& staged : open.staged) {
        publish(*segment, staged);
        const SsdRecord& record = staged.record;
        const std::uint64_t bytes = ssd_entry_bytes(record.name.size(), record.value_bytes);
        open.unsynced_bytes += bytes;
        state_.counts.unsynced_bytes += bytes;
    }
    open.staged.clear();
    count_written(open);
}

void SsdAppender::publish(SsdIndex::Segment& segment, const Staged& staged) {
    const SsdRecord& record = staged.record;
    const std::uint64_t bytes = ssd_entry_bytes(record.name.size(), record.value_bytes);
    const SsdIndex::Place place{.segment = &segment, .slot = record.slot};
    if (staged.put != nullptr) {
        state_.counts.user_bytes += bytes;
        state_.index.add(segment, record);
        const bool taken_back = staged.put->taken_back;
        // Its life may have been made longer while it waited.
        if (!taken_back && staged.put->expires_ms != record.expires_ms)
            state_.index.set_expiry(place, staged.put->expires_ms);
        state_.queue.finish(staged.put);
        // Whoever took it back found nothing here yet; what it replaced is gone in any case.
        if (taken_back) return state_.index.kill(place);
        ++state_.counts.stored;
        return state_.tell(record.name, SsdChange::kStored);
    }
    state_.counts.carried_bytes += bytes;
    const auto old = state_.index.at(staged.from, staged.slot);
    const bool alive = old && old->entry().name != nullptr;
    const std::int64_t expires_ms = alive ? old->entry().expires_ms : kSsdErased;
    state_.index.add(segment, record);
    if (!alive) {
        state_.index.kill(place);
    } else if (expires_ms != record.expires_ms) {
        state_.index.set_expiry(place, expires_ms);
    }
}

void SsdAppender::count_written(Open& open) {
    const std::uint64_t written = open.writer->written_bytes();
    state_.counts.written_bytes += written - open.counted_bytes;
    open.counted_bytes = written;
}

void SsdAppender::settle(Open& open) {
    state_.counts.unsynced_bytes -= std::exchange(open.unsynced_bytes, 0);
}

Result<void> SsdAppender::sync() {
    Result<void> result = std::exchange(seal_failed_, {});
    if (auto flushed = flush(); !flushed) result = flushed;
    for (Open& open : open_) {
        if (open.unsynced_bytes == 0) continue;
        if (auto synced = open.writer->sync(); synced) {
            const std::lock_guard lock(state_.mutex);
            settle(open);
        } else {
            result = synced;
        }
    }
    return result;
}

void SsdAppender::seal(Open& open) {
    if (!flush(open)) return;  // Given up already.
    const std::string path = open.writer->file()->path();
    if (auto sealed = open.writer->seal(); !sealed) {
        log::warn("{}: gets no footer and will be searched at the next start: {}", path,
                  sealed.error().to_string());
        seal_failed_ = sealed;
    }
    const std::lock_guard lock(state_.mutex);
    settle(open);
    count_written(open);
    state_.index.segment(open.writer->header().number)->open = false;
    open = {};
}

void SsdAppender::seal_all() {
    for (Open& open : open_)
        if (open.writer != nullptr) seal(open);
}

Result<void> SsdAppender::give_up(Open& open, const Error& error) {
    const std::lock_guard lock(state_.mutex);
    for (const Staged& staged : open.staged) {
        if (staged.put == nullptr) continue;
        state_.lose(staged.put);
        if (staged.record.offset == 0) continue;
        // It may have reached the disk all the same: a later start must not take it for the truth.
        SsdIndex::Segment* segment = state_.index.segment(open.writer->header().number);
        state_.index.add(*segment, staged.record);
        state_.index.kill({.segment = segment, .slot = staged.record.slot});
    }
    settle(open);
    count_written(open);
    state_.index.segment(open.writer->header().number)->open = false;
    open = {};
    return std::unexpected(error);
}

}  // namespace sluice::kv
