#include "kv/ssd_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "base/log.h"

namespace sluice::kv {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "sluice-ssd-tier";
constexpr std::string_view kMarkerText = "sluice ssd tier, format 2\n";
/// What it says is read as well; from then on the folder is of format 2, which older programs refuse.
constexpr std::string_view kOldMarkerText = "sluice ssd tier, format 1\n";
constexpr std::string_view kSegmentEnd = ".segment";
constexpr std::string_view kLivesEnd = ".lives";
constexpr std::size_t kNumberDigits = 16;

std::unexpected<Error> failed(std::string_view what, const std::string& path) {
    return std::unexpected(Error::io(what, errno, path));
}

Result<bool> holds_anything(const std::string& path) {
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
        if (at->path().filename() != "lost+found") return true;
    if (error) return std::unexpected(Error::io("cannot read", error.value(), path));
    return false;
}

Result<std::string> marker_text(int fd, const std::string& path) {
    std::array<char, 2 * kMarkerText.size()> text{};
    const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
    if (count < 0) return failed("cannot read", path);
    return std::string(text.data(), static_cast<std::size_t>(count));
}

Result<void> mark(int fd, const std::string& path) {
    const ssize_t count = ::pwrite(fd, kMarkerText.data(), kMarkerText.size(), 0);
    if (count != static_cast<ssize_t>(kMarkerText.size()) || ::fsync(fd) != 0)
        return failed("cannot write", path);
    return {};
}

/// Of "000000000000002a.segment", say.
std::optional<std::uint64_t> number_of(std::string_view file, std::string_view end) {
    if (file.size() != kNumberDigits + end.size() || !file.ends_with(end)) return std::nullopt;
    std::uint64_t number = 0;
    const std::string_view digits = file.substr(0, kNumberDigits);
    const char* digits_end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), digits_end, number, 16);
    if (read.ec != std::errc{} || read.ptr != digits_end) return std::nullopt;
    return number;
}

}  // namespace

Result<SsdDirectory> SsdDirectory::open(std::string path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return std::unexpected(Error::io("cannot create", error.value(), path));
    const std::string marker = path + "/" + std::string(kMarker);
    if (!fs::exists(marker, error)) {
        const auto other = holds_anything(path);
        if (!other) return std::unexpected(other.error());
        if (*other) {
            return std::unexpected(Error::invalid(
                "holds files that are not of an SSD tier: name an empty folder", path));
        }
    }
    UniqueFd fd(::open(marker.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd) return failed("cannot open", marker);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return failed("cannot lock", marker);
        return std::unexpected(
            Error(ErrorCode::kUnavailable, "another process uses this folder", path));
    }
    const auto text = marker_text(fd.get(), marker);
    if (!text) return std::unexpected(text.error());
    if (text->empty() || *text == kOldMarkerText) {
        if (auto marked = mark(fd.get(), marker); !marked) return std::unexpected(marked.error());
    } else if (*text != kMarkerText) {
        return std::unexpected(Error::unsupported(
            "is an SSD tier of another format, or none: name another folder, or remove this one",
            path));
    }
    return SsdDirectory(std::move(path), std::move(fd));
}

std::string SsdDirectory::segment_path(std::uint64_t number) const {
    return fmt::format("{}/{:016x}{}", path_, number, kSegmentEnd);
}

std::string SsdDirectory::lives_path(std::uint64_t number) const {
    return fmt::format("{}/{:016x}{}", path_, number, kLivesEnd);
}

Result<std::vector<std::uint64_t>> SsdDirectory::segments() const {
    std::set<std::uint64_t> segments;
    std::set<std::uint64_t> lives;
    std::size_t others = 0;
    std::error_code error;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
        const std::string file = at->path().filename().string();
        if (const auto segment = number_of(file, kSegmentEnd)) {
            segments.insert(*segment);
        } else if (const auto life = number_of(file, kLivesEnd)) {
            lives.insert(*life);
        } else if (file != kMarker && file != "lost+found") {
            ++others;
        }
    }
    if (error) return std::unexpected(Error::io("cannot read", error.value(), path_));
    if (others != 0)
        log::warn("{}: {} files are not of this SSD tier; they stay as they are", path_, others);
    for (const std::uint64_t number : lives)
        if (!segments.contains(number)) ::unlink(lives_path(number).c_str());
    return std::vector<std::uint64_t>(segments.begin(), segments.end());
}

void SsdDirectory::remove(std::uint64_t number) const {
    // The segment first: lives without one are removed at the next start, but a segment without its
    // lives would bring back what was erased.
    ::unlink(segment_path(number).c_str());
    ::unlink(lives_path(number).c_str());
}

Result<void> SsdDirectory::sync() const {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return failed("cannot write to disk", path_);
    return {};
}

}  // namespace sluice::kv
