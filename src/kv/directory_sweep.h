#pragma once

// Removes from a shared directory (block_directory.h) what nobody has used for as long as its class
// lives, and what crashes have left half written.
//
// Every process that uses the directory runs a sweep, and none of them is the chosen one: chosen ones
// die. Whoever comes to one of the 256 upper folders looks at when it was last swept, passes by if that
// is not long ago, and says that it sweeps it now otherwise. Two that come at the same moment both
// sweep; that costs a little and breaks nothing. Each starts at a place of its own.
//
// The same for a block that is used at the moment it is removed: it is lost, as any block may be.
//
// One thread.

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kv/retention.h"

namespace sluice::kv {

class DirectorySweep {
public:
    struct Options {
        std::filesystem::path root{};
        RetentionTimes times{};
        /// How often an upper folder is swept, by whomever. What is over is a miss from then on; its
        /// bytes are free after the next sweep.
        std::chrono::seconds every{std::chrono::hours(6)};
        std::size_t entries_a_step = 512;
        std::uint8_t first = 0;  ///< The upper folder to begin with.
    };

    enum class Step : std::uint8_t {
        kMore,  ///< There may be more to do at once.
        kDone,  ///< All upper folders have been seen; the next step begins anew.
    };

    explicit DirectorySweep(Options options) : options_(std::move(options)) {}

    /// Looks at no more than so many files and folders. Waits for the file system.
    [[nodiscard]] Step step(WallTime now);

    /// Files removed so far.
    [[nodiscard]] std::uint64_t removed() const { return removed_; }

private:
    struct Close {
        void operator()(DIR* folder) const { ::closedir(folder); }
    };
    using Folder = std::unique_ptr<DIR, Close>;

    /// Whether it is ours to sweep the present upper folder.
    [[nodiscard]] bool claim(WallTime now) const;
    /// Opens the next folder below `upper_` that holds blocks; false if there is no other.
    [[nodiscard]] bool open_lower();
    [[nodiscard]] Step next_upper();
    void look_at(const char* name, WallTime now);

    Options options_;
    std::size_t upper_done_ = 0;  ///< Upper folders seen in this round.
    std::string upper_path_;
    Folder upper_;  ///< Null: the present upper folder has not been claimed yet.
    std::string lower_path_;
    Folder lower_;
    std::uint64_t removed_ = 0;
};

}  // namespace sluice::kv
