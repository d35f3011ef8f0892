#pragma once

// The output file of a batch run, and the memory of what is already in it.
//
// A row counts as done exactly when its whole line, newline included, is in the file. Rows are written
// in one piece as they finish, so a run that is killed at any moment leaves a file whose last line may
// be torn: the next run cuts that off and goes on with the rows that are missing. A lock keeps two
// runs from writing one file. What doesn't look like rows of ours is never cut and never added to.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/unique_fd.h"

namespace sluice::app {

enum class Claim : std::uint8_t {
    kMine,   ///< To be computed now.
    kDone,   ///< In the file since an earlier run.
    kTwice,  ///< This input named the id before.
};

class RunJournal {
public:
    /// "-" is standard output, which remembers nothing.
    [[nodiscard]] static Result<RunJournal> open(const std::string& path);

    /// `id` is JSON: a string or an integer. `kExhausted` if there are too many ids.
    [[nodiscard]] Result<Claim> claim(std::string_view id);

    /// Adds one line, `row` being JSON without a newline.
    [[nodiscard]] Result<void> append(std::string row);

    /// Rows of earlier runs that hold an error.
    [[nodiscard]] std::uint64_t failed_before() const { return failed_before_; }
    [[nodiscard]] std::uint64_t done_before() const { return done_before_; }

private:
    enum class State : std::uint8_t { kDone, kSeen };

    /// A digest of the id: a file may have millions.
    struct Key {
        Xxh128 digest;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const { return key.digest.low; }
    };

    [[nodiscard]] Result<void> read_rows();
    [[nodiscard]] Result<void> remember(std::string_view line, std::uint64_t number);

    UniqueFd file_;
    std::string path_;
    std::unordered_map<Key, State, KeyHash> ids_;
    std::uint64_t failed_before_ = 0;
    std::uint64_t done_before_ = 0;
};

}  // namespace sluice::app
