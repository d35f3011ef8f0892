#include "kv/ssd_segment_writer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"
#include "base/secure_random.h"
#include "kv/byte_codec.h"
#include "kv/ssd_lives.h"

namespace sluice::kv {
namespace {

constexpr std::size_t kBufferBytes = 1024 * 1024;

std::byte* aligned_bytes(std::size_t bytes) {
    void* data = std::aligned_alloc(kSsdSectorBytes, bytes);
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(data);
}

std::uint64_t random_nonce() {
    std::uint64_t nonce = 0;
    fill_secure_random({reinterpret_cast<std::uint8_t*>(&nonce), sizeof nonce});
    return nonce;
}

struct Filled {
    std::uint64_t data = 0;
    std::uint64_t footer = 0;
    std::size_t entries = 0;
    std::uint64_t segment = 0;  ///< What all this must stay below.
};

bool has_room(const Filled& filled, std::size_t name_bytes, std::uint64_t value_bytes) {
    if (filled.entries >= kSsdSegmentEntries || value_bytes > filled.segment) return false;
    const std::uint64_t data = filled.data + ssd_entry_bytes(name_bytes, value_bytes);
    const std::uint64_t footer =
        whole_sectors(filled.footer + kSsdRecordBytes + name_bytes) + kSsdSectorBytes;
    const std::uint64_t lives = whole_sectors((filled.entries + 1) * kSsdLifeBytes);
    return data + footer + lives <= filled.segment;
}

}  // namespace

SsdSegmentWriter::SsdSegmentWriter(const SsdSegmentHeader& header, std::shared_ptr<SsdFile> file,
                                   std::uint64_t segment_bytes)
    : header_(header),
      file_(std::move(file)),
      segment_bytes_(segment_bytes),
      buffer_(aligned_bytes(kBufferBytes), [](void* data) { std::free(data); }) {}

Result<std::unique_ptr<SsdSegmentWriter>> SsdSegmentWriter::create(
    const SsdDirectory& directory, std::uint64_t number, Retention retention,
    const SsdFileOptions& options, const SsdFaults& faults, SsdSpace& space) {
    auto file = SsdFile::create(directory.segment_path(number), options.segment_bytes,
                                options.access, faults, space.claim(options.segment_bytes));
    if (!file) return std::unexpected(file.error());
    const SsdSegmentHeader header{
        .retention = retention, .number = number, .nonce = random_nonce()};
    std::unique_ptr<SsdSegmentWriter> writer(
        new SsdSegmentWriter(header, *file, options.segment_bytes));
    auto begun = writer->stage(encode_segment_header(header));
    if (begun) begun = writer->flush();
    if (begun) begun = directory.sync();
    if (!begun) {
        directory.remove(number);
        return std::unexpected(begun.error());
    }
    return writer;
}

bool SsdSegmentWriter::fits_ever(std::size_t name_bytes, std::uint64_t value_bytes,
                                 std::uint64_t segment_bytes) {
    return has_room({.data = kSsdSectorBytes, .segment = segment_bytes}, name_bytes, value_bytes);
}

bool SsdSegmentWriter::fits(std::size_t name_bytes, std::uint64_t value_bytes) const {
    return has_room({.data = written_ + staged_,
                     .footer = footer_bytes_,
                     .entries = records_.size(),
                     .segment = segment_bytes_},
                    name_bytes, value_bytes);
}

Result<SsdRecord> SsdSegmentWriter::append(std::string_view name, std::string_view value,
                                           std::int64_t expires_ms, std::uint64_t sequence) {
    SLUICE_ASSERT(fits(name.size(), value.size()));
    SsdRecord record{.offset = written_ + staged_,
                     .value_bytes = value.size(),
                     .sequence = sequence,
                     .expires_ms = expires_ms,
                     .slot = static_cast<std::uint32_t>(records_.size()),
                     .parent = ssd_parent(name, value),
                     .name = std::string(name)};
    auto staged = stage(encode_entry_header({.nonce = header_.nonce,
                                             .sequence = sequence,
                                             .expires_ms = expires_ms,
                                             .slot = record.slot,
                                             .value_bytes = value.size(),
                                             .value_checksum = checksum_of(value),
                                             .name = name}));
    if (staged) staged = stage(value);
    if (staged) staged = fill_up_sector();
    if (!staged) return std::unexpected(staged.error());
    footer_bytes_ += kSsdRecordBytes + name.size();
    records_.push_back(record);
    return record;
}

Result<void> SsdSegmentWriter::stage(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t count = std::min(bytes.size(), kBufferBytes - staged_);
        std::memcpy(buffer_.get() + staged_, bytes.data(), count);
        staged_ += count;
        bytes.remove_prefix(count);
        if (staged_ < kBufferBytes) break;
        if (auto flushed = flush(); !flushed) return flushed;
    }
    return {};
}

Result<void> SsdSegmentWriter::fill_up_sector() {
    const std::size_t whole = whole_sectors(staged_);
    std::memset(buffer_.get() + staged_, 0, whole - staged_);
    staged_ = whole;
    return staged_ == kBufferBytes ? flush() : Result<void>{};
}

Result<void> SsdSegmentWriter::flush() {
    SLUICE_ASSERT(staged_ % kSsdSectorBytes == 0);
    if (staged_ == 0) return {};
    if (auto done = file_->write({buffer_.get(), staged_}, written_); !done) return done;
    written_ += staged_;
    staged_ = 0;
    return {};
}

Result<void> SsdSegmentWriter::sync() { return file_->sync(); }

Result<void> SsdSegmentWriter::seal() {
    if (auto flushed = flush(); !flushed) return flushed;
    if (auto staged = stage(encode_footer(records_, written_, header_.nonce)); !staged)
        return staged;
    if (auto flushed = flush(); !flushed) return flushed;
    if (auto synced = file_->sync(); !synced) return synced;
    if (auto cut = file_->truncate(written_); !cut) return cut;
    file_->claim().resize(written_ + whole_sectors(records_.size() * kSsdLifeBytes));
    return {};
}

Result<void> seal_torn_segment(SsdFile& file, const SsdSegmentHeader& header,
                               std::span<const SsdRecord> records) {
    std::uint64_t end = kSsdSectorBytes;
    if (!records.empty()) {
        const SsdRecord& last = records.back();
        end = last.offset + ssd_entry_bytes(last.name.size(), last.value_bytes);
    }
    const std::string footer = encode_footer(records, end, header.nonce);
    const std::unique_ptr<std::byte, void (*)(void*)> aligned(aligned_bytes(footer.size()),
                                                              [](void* data) { std::free(data); });
    std::memcpy(aligned.get(), footer.data(), footer.size());
    if (auto cut = file.truncate(end); !cut) return cut;
    if (auto written = file.write({aligned.get(), footer.size()}, end); !written) return written;
    return file.sync();
}

}  // namespace sluice::kv
