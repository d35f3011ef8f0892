#include "record/failure_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"

namespace sluice::record {
namespace {

constexpr std::uint64_t kMagic = 0x316C6E6A63657253;  // "Srecjnl1"
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kLargestBytes = std::size_t{1} << 30U;

/// Before each text.
struct EntryHead {
    std::uint32_t size;
    std::uint32_t check;
};

std::size_t padded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// The position is part of it: an old lap's entry at the same place does not pass for a new one.
std::uint32_t check_of(std::uint64_t position, std::string_view text) {
    const Xxh128 hash = xxh3_128(std::as_bytes(std::span(text)));
    return static_cast<std::uint32_t>(hash.low ^ (position * 0x9E3779B97F4A7C15ULL >> 32U));
}

Error io_error(std::string_view what, const std::string& path) {
    const int number = errno;
    const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    const Error error = Error::io(what, number, path);
    return full ? Error(ErrorCode::kExhausted, error.message(), path) : error;
}

}  // namespace

struct FailureJournal::Header {
    std::uint64_t magic;
    std::uint64_t capacity;
    std::uint64_t id;
    std::atomic<std::uint64_t> begin;
    std::atomic<std::uint64_t> end;
};

FailureJournal::FailureJournal(UniqueFd file, void* memory, std::size_t capacity)
    : file_(std::move(file)),
      header_(static_cast<Header*>(memory)),
      ring_(static_cast<std::byte*>(memory) + kHeaderBytes),
      capacity_(capacity) {}

FailureJournal::FailureJournal(FailureJournal&& other) noexcept
    : file_(std::move(other.file_)),
      header_(std::exchange(other.header_, nullptr)),
      ring_(other.ring_),
      capacity_(other.capacity_) {}

FailureJournal::~FailureJournal() {
    if (header_ != nullptr) ::munmap(header_, kHeaderBytes + capacity_);
}

Result<FailureJournal> FailureJournal::map(UniqueFd file, std::size_t bytes) {
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    const int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* const memory =
        ::mmap(nullptr, kHeaderBytes + bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
    if (memory == MAP_FAILED) return std::unexpected(Error::io("mapping a record journal", errno));
    return FailureJournal(std::move(file), memory, bytes);
}

Result<FailureJournal> FailureJournal::in_memory(std::size_t bytes) {
    auto journal = map(UniqueFd(), padded(bytes));
    if (journal) journal->initialise();
    return journal;
}

Result<FailureJournal> FailureJournal::open(const std::string& path, std::size_t bytes) {
    bytes = padded(bytes);
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(io_error("opening a record journal", path));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        return std::unexpected(
            Error(ErrorCode::kUnavailable, "another process writes its records here", path));
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0)
        return std::unexpected(io_error("reading a record journal", path));
    if (status.st_size == 0) return make(std::move(file), path, bytes);
    const auto held = static_cast<std::size_t>(status.st_size) - kHeaderBytes;
    if (static_cast<std::size_t>(status.st_size) > kHeaderBytes && held <= kLargestBytes &&
        held % kAlignment == 0) {
        auto journal = map(std::move(file), held);
        if (!journal) return journal;
        // Zero: its maker was killed before it wrote more.
        if (journal->header_->magic == 0) journal->initialise();
        if (journal->sane()) return journal;
    }
    const std::string aside = path + ".corrupt";
    log::error("{} is damaged; it is now {}, and a new one begins", path, aside);
    if (std::rename(path.c_str(), aside.c_str()) != 0)
        return std::unexpected(io_error("setting a damaged journal aside", path));
    return open(path, bytes);
}

Result<FailureJournal> FailureJournal::make(UniqueFd file, const std::string& path,
                                            std::size_t bytes) {
    const int failed = ::posix_fallocate(file.get(), 0, static_cast<off_t>(kHeaderBytes + bytes));
    if (failed != 0) {
        errno = failed;
        const Error error = io_error("reserving a record journal", path);
        std::remove(path.c_str());  // A half of one would look damaged next time.
        return std::unexpected(error);
    }
    auto journal = map(std::move(file), bytes);
    if (journal) journal->initialise();
    return journal;
}

void FailureJournal::initialise() {
    std::random_device device;
    header_->capacity = capacity_;
    header_->id = (std::uint64_t{device()} << 31) | device();
    header_->begin.store(0);
    header_->end.store(0);
    header_->magic = kMagic;
}

bool FailureJournal::sane() const {
    return header_->magic == kMagic && header_->capacity == capacity_ && begin() <= end() &&
           end() - begin() <= capacity_;
}

FailureJournal::Position FailureJournal::begin() const { return header_->begin.load(); }
FailureJournal::Position FailureJournal::end() const { return header_->end.load(); }
std::uint64_t FailureJournal::id() const { return header_->id; }

void FailureJournal::copy_in(Position position, const void* data, std::size_t size) {
    const std::size_t at = position % capacity_;
    const std::size_t first = std::min(size, capacity_ - at);
    std::memcpy(ring_ + at, data, first);
    std::memcpy(ring_, static_cast<const std::byte*>(data) + first, size - first);
}

void FailureJournal::copy_out(Position position, void* data, std::size_t size) const {
    const std::size_t at = position % capacity_;
    const std::size_t first = std::min(size, capacity_ - at);
    std::memcpy(data, ring_ + at, first);
    std::memcpy(static_cast<std::byte*>(data) + first, ring_, size - first);
}

bool FailureJournal::append(std::string_view text) {
    const Position at = end();
    const std::size_t size = sizeof(EntryHead) + padded(text.size());
    if (size > capacity_ - (at - begin())) return false;
    const EntryHead head{.size = static_cast<std::uint32_t>(text.size()),
                         .check = check_of(at, text)};
    copy_in(at, &head, sizeof(head));
    copy_in(at + sizeof(head), text.data(), text.size());
    // Last: a process killed before this line has appended nothing.
    header_->end.store(at + size, std::memory_order_release);
    return true;
}

std::optional<FailureJournal::Entry> FailureJournal::read(Position position) const {
    const Position last = end();
    if (position < begin() || position + sizeof(EntryHead) > last) return std::nullopt;
    EntryHead head{};
    copy_out(position, &head, sizeof(head));
    const Position next = position + sizeof(head) + padded(head.size);
    if (next > last) return std::nullopt;
    Entry entry{.text = std::string(head.size, '\0'), .next = next};
    copy_out(position + sizeof(head), entry.text.data(), head.size);
    if (check_of(position, entry.text) != head.check) return std::nullopt;
    return entry;
}

void FailureJournal::release(Position position) {
    SLUICE_ASSERT(position >= begin() && position <= end());
    header_->begin.store(position, std::memory_order_release);
}

}  // namespace sluice::record
