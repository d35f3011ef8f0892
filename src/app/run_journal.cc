#include "app/run_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cerrno>

#include "app/run_lines.h"
#include "base/limits.h"

namespace sluice::app {

namespace json = boost::json;

namespace {

Xxh128 digest_of(std::string_view id) { return xxh3_128(std::as_bytes(std::span(id))); }

Error not_ours(std::uint64_t line) {
    return Error::invalid(
        "this is not a row that `sluice run` wrote, so nothing is added to the file",
        fmt::format("line {}", line));
}

Error exhausted() {
    return {ErrorCode::kExhausted,
            fmt::format("there are more than {} rows, which is the limit", limits::kBatchRows)};
}

}  // namespace

Result<RunJournal> RunJournal::open(const std::string& path) {
    RunJournal journal;
    journal.path_ = path;
    if (path == "-") {
        journal.file_.reset(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
        return journal;
    }
    constexpr mode_t kMode = 0666;
    journal.file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    struct stat status{};
    if (!journal.file_ || ::fstat(journal.file_.get(), &status) != 0) {
        return std::unexpected(Error::io("cannot open the file", errno, path));
    }
    if (!S_ISREG(status.st_mode)) return journal;
    if (::flock(journal.file_.get(), LOCK_EX | LOCK_NB) != 0) {
        return std::unexpected(
            Error(ErrorCode::kUnavailable, "another run is writing this file", path));
    }
    if (auto read = journal.read_rows(); !read) {
        const Error& error = read.error();
        return std::unexpected(
            Error(error.code(), error.message(),
                  error.place().empty() ? path : fmt::format("{}: {}", path, error.place())));
    }
    return journal;
}

// Leaves the file's position behind the last whole row.
Result<void> RunJournal::read_rows() {
    LineReader lines(file_.get());
    std::uint64_t whole = 0;  // Bytes of whole rows.
    for (std::uint64_t number = 1;; ++number) {
        const auto line = lines.next();
        if (!line) return std::unexpected(line.error());
        if (line->kind == LineKind::kEnd) break;
        if (line->kind == LineKind::kStopped) {
            return std::unexpected(Error(ErrorCode::kCancelled, "interrupted"));
        }
        if (line->kind == LineKind::kLine && !line->complete && line->text.starts_with('{')) break;
        if (line->kind == LineKind::kTooLong || !line->complete) {
            return std::unexpected(not_ours(number));
        }
        if (auto known = remember(line->text, number); !known) return known;
        whole = lines.offset();
    }
    if (::ftruncate(file_.get(), static_cast<off_t>(whole)) != 0 ||
        ::lseek(file_.get(), static_cast<off_t>(whole), SEEK_SET) < 0) {
        return std::unexpected(Error::io("cannot cut off a torn row", errno));
    }
    return {};
}

Result<void> RunJournal::remember(std::string_view line, std::uint64_t number) {
    json::error_code code;
    json::parse_options options;
    options.max_depth = limits::kJsonDepth;
    const json::value row = json::parse(line, code, {}, options);
    const json::object* object = code ? nullptr : row.if_object();
    const json::value* id = object ? object->if_contains("id") : nullptr;
    const bool is_row = id && (object->contains("output_ids") || object->contains("error"));
    if (!is_row) return std::unexpected(not_ours(number));
    if (ids_.size() >= limits::kBatchRows) return std::unexpected(exhausted());
    ids_.insert_or_assign(Key{digest_of(json::serialize(*id))}, State::kDone);
    ++done_before_;
    if (object->contains("error")) ++failed_before_;
    return {};
}

Result<Claim> RunJournal::claim(std::string_view id) {
    const auto [entry, is_new] = ids_.try_emplace(Key{digest_of(id)}, State::kSeen);
    if (is_new && ids_.size() > limits::kBatchRows) return std::unexpected(exhausted());
    if (is_new) return Claim::kMine;
    if (entry->second == State::kSeen) return Claim::kTwice;
    entry->second = State::kSeen;
    return Claim::kDone;
}

Result<void> RunJournal::append(std::string row) {
    row += '\n';
    std::string_view left = row;
    while (!left.empty()) {
        const ssize_t count = ::write(file_.get(), left.data(), left.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::unexpected(Error::io("cannot write", errno, path_));
        left.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace sluice::app
