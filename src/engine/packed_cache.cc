#include "engine/packed_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "checkpoint/fingerprint.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

fs::path user_cache_folder() {
    // Read before the process has other threads that could change it.
    const char* cache = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe)
    if (cache != nullptr && *cache == '/') return fs::path(cache) / "sluice";
    const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
    if (home != nullptr && *home == '/') return fs::path(home) / ".cache/sluice";
    return {};
}

bool is_at(int file, const fs::path& path) {
    struct stat open_file{};
    struct stat named_file{};
    return ::fstat(file, &open_file) == 0 && ::stat(path.c_str(), &named_file) == 0 &&
           open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

/// Waits for other processes that write the same file, within bounds.
Result<UniqueFd> lock_file(const fs::path& path) {
    const auto until = Clock::now() + std::chrono::seconds(limits::kPackedLockSeconds);
    for (;;) {
        UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!file) return std::unexpected(Error::io("create the file", errno, path.string()));
        if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            if (is_at(file.get(), path)) return file;
            continue;  // Its last holder has renamed or removed it since.
        }
        if (errno != EWOULDBLOCK && errno != EINTR)
            return std::unexpected(Error::io("lock the file", errno, path.string()));
        if (Clock::now() > until) {
            return std::unexpected(Error(ErrorCode::kTimeout,
                                         "another process has been writing it for too long",
                                         path.string()));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

/// So that the new name survives a crash of the machine.
void sync_folder(const fs::path& folder) {
    const UniqueFd open_folder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (open_folder) ::fsync(open_folder.get());
}

}  // namespace

PackedOptions PackedOptions::from_environment() {
    PackedOptions options;
    const char* chosen = std::getenv("SLUICE_PACKED");  // NOLINT(concurrency-mt-unsafe)
    if (chosen == nullptr || *chosen == '\0') {
        options.fallback = user_cache_folder();
    } else if (std::string_view(chosen) == "off") {
        options.use = PackedUse::kOff;
    } else {
        options.folder = chosen;
    }
    return options;
}

PackedCache::PackedCache(const checkpoint::GgufFile& checkpoint, const fs::path& model,
                         const WeightPlan& plan, ThreadTeam& team, PackedOptions options)
    : checkpoint_(checkpoint),
      plan_(plan),
      team_(team),
      options_(std::move(options)),
      digest_(plan.digest()) {
    std::error_code unresolved;
    model_ = fs::canonical(model, unresolved);
    if (unresolved) model_ = model;
}

const std::string& PackedCache::fingerprint() {
    if (fingerprint_.empty()) fingerprint_ = checkpoint::fingerprint(checkpoint_);
    return fingerprint_;
}

std::vector<fs::path> PackedCache::places() const {
    if (options_.use == PackedUse::kOff) return {};
    const std::string name = model_.filename().string();
    const std::string suffix = fmt::format(".packed-{}", tensor::kPackingVersion);
    // Models of one name share a cache folder.
    const std::string of_path =
        fmt::format("{}-{}{}", name, to_hex(sha256(model_.string())).substr(0, 16), suffix);
    if (!options_.folder.empty()) return {options_.folder / of_path};
    std::vector<fs::path> places{model_.parent_path() / (name + suffix)};
    if (!options_.fallback.empty()) places.push_back(options_.fallback / of_path);
    return places;
}

Result<PackedWeights> PackedCache::obtain() {
    const std::vector<fs::path> where = places();
    for (const fs::path& path : where) {
        auto found = find(path);
        if (found) return found;
        if (found.error().code() == ErrorCode::kNotFound) continue;
        log::warn("packed weights are not used: {}", found.error().to_string());
    }
    const bool worth_a_file =
        options_.use == PackedUse::kRefresh || plan_.bytes() >= options_.least_bytes;
    std::optional<Error> failure;
    for (const fs::path& path : where) {
        if (!worth_a_file) break;
        auto built = build(path);
        if (built) return built;
        log::debug("no packed weights at {}", built.error().to_string());
        failure = built.error();
    }
    if (failure && options_.use == PackedUse::kRefresh) return std::unexpected(*failure);
    if (failure) {
        log::warn(
            "packed weights can't be kept, so every start packs again and no worker shares "
            "them: {}",
            failure->to_string());
    }
    return in_memory();
}

Result<PackedWeights> PackedCache::find(const fs::path& path) {
    auto file = PackedFile::open(path);
    if (!file) return std::unexpected(file.error());
    if (auto good = check(*file); !good) return std::unexpected(good.error().within(path.string()));
    fingerprint_ = file->identity().fingerprint;
    return PackedWeights{.fingerprint = fingerprint_,
                         .bytes = plan_.bytes(),
                         .path = path,
                         .is_new = false,
                         .file = std::move(*file),
                         .memory = {}};
}

Result<void> PackedCache::check(const PackedFile& file) {
    const PackedIdentity& identity = file.identity();
    if (identity.plan != digest_) return std::unexpected(Error::invalid("of another model"));
    const bool untouched = identity.stamp && identity.stamp == checkpoint_.stamp();
    if (!untouched && options_.use == PackedUse::kRefresh)
        return std::unexpected(Error::invalid("the model's file was touched since"));
    if (!untouched && identity.fingerprint != fingerprint())
        return std::unexpected(Error::invalid("of other weights"));
    return file.verify(team_);
}

Result<PackedWeights> PackedCache::build(const fs::path& path) {
    std::error_code exists;  // If it can't be made, the file can't either, and says why.
    fs::create_directories(path.parent_path(), exists);
    fs::path temporary = path;
    temporary += ".tmp";
    const auto locked = lock_file(temporary);
    if (!locked) return std::unexpected(locked.error());
    // Whoever held the lock before may have written what is wanted.
    if (auto found = find(path)) {
        ::unlink(temporary.c_str());
        return found;
    }
    const auto start = Clock::now();
    const PackedIdentity identity{
        .fingerprint = fingerprint(), .plan = digest_, .stamp = checkpoint_.stamp().if_settled()};
    Result<void> done = PackedFile::write(locked->get(), plan_, identity, team_, options_.progress);
    if (done && ::rename(temporary.c_str(), path.c_str()) != 0)
        done = std::unexpected(Error::io("rename the file", errno));
    if (!done) {
        ::unlink(temporary.c_str());
        return std::unexpected(done.error().within(path.string()));
    }
    sync_folder(path.parent_path());
    auto file = PackedFile::open(path);
    if (!file) return std::unexpected(file.error());
    log::info("packed {} bytes of weights into {} in {:.1f} s", plan_.bytes(), path.string(),
              std::chrono::duration<double>(Clock::now() - start).count());
    return PackedWeights{.fingerprint = fingerprint(),
                         .bytes = plan_.bytes(),
                         .path = path,
                         .is_new = true,
                         .file = std::move(*file),
                         .memory = {}};
}

PackedWeights PackedCache::in_memory() {
    PackedWeights weights{.fingerprint = fingerprint(),
                          .bytes = plan_.bytes(),
                          .path = {},
                          .is_new = true,
                          .file = {},
                          .memory = tensor::AlignedBuffer(plan_.bytes())};
    std::atomic<std::size_t> next{0};
    constexpr std::size_t kPart = std::size_t{1} << 20;
    team_.run([&](std::size_t) {
        for (std::size_t at = next.fetch_add(kPart); at < plan_.bytes(); at = next.fetch_add(kPart))
            plan_.pack(at, {weights.memory.data() + at, std::min(kPart, plan_.bytes() - at)});
    });
    return weights;
}

}  // namespace sluice::engine
