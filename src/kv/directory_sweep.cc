#include "kv/directory_sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/unique_fd.h"
#include "kv/block_directory.h"
#include "kv/file_time.h"

namespace sluice::kv {
namespace {

constexpr std::size_t kUpperFolders = 256;

bool is_lower_folder(std::string_view name) {
    return name.size() == 2 && std::ranges::all_of(name, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

}  // namespace

bool DirectorySweep::claim(WallTime now) const {
    const std::string stamp = upper_path_ + "/.swept";
    struct stat file{};
    if (::lstat(stamp.c_str(), &file) == 0 && modified(file) <= now &&
        now - modified(file) < options_.every) {
        return false;
    }
    // Not there: the upper folder isn't, either, or it has never been swept.
    const UniqueFd fd(
        ::open(stamp.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0660));
    if (!fd) return false;
    const timespec times[2] = {to_timespec(now), to_timespec(now)};
    return ::futimens(fd.get(), times) == 0;
}

DirectorySweep::Step DirectorySweep::next_upper() {
    lower_.reset();
    upper_.reset();
    if (++upper_done_ < kUpperFolders) return Step::kMore;
    upper_done_ = 0;
    return Step::kDone;
}

bool DirectorySweep::open_lower() {
    while (const dirent* entry = ::readdir(upper_.get())) {
        if (!is_lower_folder(entry->d_name)) continue;
        lower_path_ = fmt::format("{}/{}", upper_path_, entry->d_name);
        lower_.reset(::opendir(lower_path_.c_str()));
        if (lower_) return true;
    }
    return false;
}

void DirectorySweep::look_at(const char* name, WallTime now) {
    const std::string_view text(name);
    const bool temporary = text.starts_with(kTemporaryPrefix);
    const auto block = parse_block_name(text);
    if (!temporary && !block) return;  // Not ours.
    const std::string path = fmt::format("{}/{}", lower_path_, text);
    struct stat file{};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return;
    const WallTime end = temporary ? modified(file) + kTemporaryLife
                                   : options_.times.end(block->retention, modified(file));
    if (end <= now && ::unlink(path.c_str()) == 0) ++removed_;
}

DirectorySweep::Step DirectorySweep::step(WallTime now) {
    for (std::size_t seen = 0; seen < options_.entries_a_step; ++seen) {
        if (!upper_) {
            const auto number = (options_.first + upper_done_) % kUpperFolders;
            upper_path_ = fmt::format("{}/{:02x}", options_.root.string(), number);
            if (claim(now)) upper_.reset(::opendir(upper_path_.c_str()));
            if (!upper_ && next_upper() == Step::kDone) return Step::kDone;
            continue;
        }
        if (!lower_) {
            if (!open_lower() && next_upper() == Step::kDone) return Step::kDone;
            continue;
        }
        const dirent* entry = ::readdir(lower_.get());
        if (entry == nullptr) {
            lower_.reset();
        } else {
            look_at(entry->d_name, now);
        }
    }
    return Step::kMore;
}

}  // namespace sluice::kv
