#include "kv/ssd_recovery.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "kv/ssd_segment_writer.h"

namespace sluice::kv {
namespace {

/// Kept for the next read of a recovery; values are larger than nearly all of it.
constexpr std::size_t kIdleBytes = 1024 * 1024;

std::string_view text(const std::shared_ptr<std::byte>& bytes, std::size_t count) {
    return {reinterpret_cast<const char*>(bytes.get()), count};
}

}  // namespace

SsdRecovery::SsdRecovery(const SsdDirectory& directory, SsdAccess access, const SsdFaults& faults,
                         SsdSpace& space)
    : directory_(directory),
      access_(access),
      faults_(faults),
      space_(space),
      buffers_(std::make_shared<SsdBuffers>(kIdleBytes)) {}

Result<std::optional<SsdFoundSegment>> SsdRecovery::recover(std::uint64_t number) const {
    auto file = SsdFile::open(directory_.segment_path(number), access_, faults_, space_.claim(0));
    if (!file) return std::unexpected(file.error());
    const auto size = (*file)->size();
    if (!size) return std::unexpected(size.error());
    (*file)->claim().resize(whole_sectors(*size));
    if (*size < kSsdSectorBytes) {  // Its process ended before the first write.
        directory_.remove(number);
        return std::nullopt;
    }
    SsdFoundSegment segment;
    segment.file = *file;
    if (auto header = find_header(segment, number); !header)
        return std::unexpected(header.error().within((*file)->path()));
    const auto footer = read_footer(segment, *size);
    if (!footer) return std::unexpected(footer.error());
    if (*footer != Footer::kRead) {
        if (auto searched = search(segment, *size); !searched)
            return std::unexpected(searched.error());
    }
    if (*footer == Footer::kNone) cut_tail(segment);
    auto lives = read_lives(directory_.lives_path(number), segment.header.nonce, faults_);
    if (!lives) return std::unexpected(lives.error());
    segment.lives = std::move(*lives);
    const auto now = segment.file->size();
    if (!now) return std::unexpected(now.error());
    segment.file->claim().resize(whole_sectors(*now) +
                                 whole_sectors(segment.records.size() * kSsdLifeBytes));
    return segment;
}

Result<void> SsdRecovery::find_header(SsdFoundSegment& segment, std::uint64_t number) const {
    const auto sector = read(segment, 0, kSsdSectorBytes);
    if (!sector) return std::unexpected(sector.error());
    const auto header = decode_segment_header(text(*sector, kSsdSectorBytes));
    if (!header) return std::unexpected(header.error());
    if (header->number != number)
        return std::unexpected(Error::corrupt("has another segment's name"));
    segment.header = *header;
    return {};
}

Result<SsdRecovery::Footer> SsdRecovery::read_footer(SsdFoundSegment& segment,
                                                     std::uint64_t bytes) const {
    if (bytes % kSsdSectorBytes != 0 || bytes < 2 * kSsdSectorBytes) return Footer::kNone;
    const auto last = read(segment, bytes - kSsdSectorBytes, kSsdSectorBytes);
    if (!last) return std::unexpected(last.error());
    const auto trailer = decode_trailer(text(*last, kSsdSectorBytes), segment.header.nonce, bytes);
    if (!trailer) {
        return is_trailer(text(*last, kSsdSectorBytes)) ? Footer::kDamaged : Footer::kNone;
    }
    const auto footer = read(segment, trailer->footer_offset, trailer->footer_bytes);
    if (!footer) return std::unexpected(footer.error());
    auto records = decode_footer(text(*footer, trailer->footer_bytes), *trailer);
    if (!records) return Footer::kDamaged;
    segment.records = std::move(*records);
    return Footer::kRead;
}

Result<void> SsdRecovery::search(SsdFoundSegment& segment, std::uint64_t bytes) const {
    segment.torn = true;
    // After a damaged entry the next one is found at one of the sectors that follow.
    std::uint64_t offset = kSsdSectorBytes;
    while (offset + kSsdSectorBytes <= bytes) {
        auto record = entry_at(segment, offset, bytes);
        if (!record) return std::unexpected(record.error());
        const bool follows =
            *record && (segment.records.empty() || segment.records.back().slot < (*record)->slot);
        if (follows) {
            offset += ssd_entry_bytes((*record)->name.size(), (*record)->value_bytes);
            segment.records.push_back(std::move(**record));
        } else {
            offset += kSsdSectorBytes;
        }
    }
    return {};
}

void SsdRecovery::cut_tail(SsdFoundSegment& segment) const {
    if (auto sealed = seal_torn_segment(*segment.file, segment.header, segment.records); !sealed) {
        log::warn("{}: gets no footer and will be searched again: {}", segment.file->path(),
                  sealed.error().to_string());
    }
}

Result<std::optional<SsdRecord>> SsdRecovery::entry_at(SsdFoundSegment& segment,
                                                       std::uint64_t offset,
                                                       std::uint64_t bytes) const {
    const auto head = read(segment, offset, kSsdSectorBytes);
    if (!head) return std::unexpected(head.error());
    const auto header = decode_entry_header(text(*head, kSsdSectorBytes), segment.header.nonce);
    if (!header) return std::nullopt;
    const std::uint64_t whole = ssd_entry_bytes(header->name.size(), header->value_bytes);
    if (whole > bytes - offset) return std::nullopt;
    const auto entry = read(segment, offset, whole);
    if (!entry) return std::unexpected(entry.error());
    const auto value = decode_entry(text(*entry, whole), segment.header.nonce, header->name);
    if (!value) return std::nullopt;
    return SsdRecord{.offset = offset,
                     .value_bytes = header->value_bytes,
                     .sequence = header->sequence,
                     .expires_ms = header->expires_ms,
                     .slot = header->slot,
                     .parent = ssd_parent(header->name, *value),
                     .name = std::string(header->name)};
}

Result<std::shared_ptr<std::byte>> SsdRecovery::read(SsdFoundSegment& segment, std::uint64_t offset,
                                                     std::uint64_t bytes) const {
    const std::uint64_t whole = whole_sectors(bytes);
    auto buffer = buffers_->take(whole);
    if (auto done = segment.file->read({buffer.get(), whole}, offset); !done)
        return std::unexpected(done.error());
    segment.bytes_read += whole;
    return buffer;
}

}  // namespace sluice::kv
