#pragma once

// Packed weights on disk, so that the second start maps what the first one computed, and the workers of
// one machine share its pages. The payload starts the file, for pages of the largest size; behind it
// lie a checksum for each chunk and a footer that says what the file was made of:
//
//   payload                    WeightPlan's bytes
//   XXH3-128 of each chunk     16 MiB of payload each, so that threads write and check side by side
//   footer                     versions, sizes, fingerprint, plan, stamp, and the XXH3-128 of
//                              the checksums and the footer
//
// Nothing in it is believed: the footer is checked in `open`, the payload in `verify`. Words are in the
// machine's byte order; another order is another magic number. Who writes a file and under which name
// is PackedCache's business.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread_team.h"
#include "checkpoint/mapped_file.h"
#include "engine/weight_plan.h"

namespace sluice::engine {

/// What packed weights depend on.
struct PackedIdentity {
    std::string fingerprint;      ///< Of the checkpoint: 64 hexadecimal digits.
    Xxh128 plan;                  ///< WeightPlan::digest.
    checkpoint::FileStamp stamp;  ///< Of the checkpoint's file; a hint that spares reading it.
};

/// Told how many bytes are done; called by one thread at a time.
using PackProgress = std::function<void(std::size_t done, std::size_t bytes)>;

class PackedFile {
public:
    static constexpr std::size_t kChunkBytes = std::size_t{16} << 20;

    PackedFile() = default;

    /// Maps the file and checks everything but the payload. `kNotFound`, `kIo`; `kCorrupt` for what is
    /// no whole file of this format; `kUnsupported` for one of another version.
    [[nodiscard]] static Result<PackedFile> open(const std::filesystem::path& path);

    /// Computes `plan` into an open file, whatever was in it, and waits until the disk has it.
    /// `kIo`: no space, no rights.
    [[nodiscard]] static Result<void> write(int file, const WeightPlan& plan,
                                            const PackedIdentity& identity, ThreadTeam& team,
                                            const PackProgress& progress);

    /// Reads the whole payload. `kCorrupt` names the first chunk that is damaged.
    [[nodiscard]] Result<void> verify(ThreadTeam& team) const;

    [[nodiscard]] const PackedIdentity& identity() const { return identity_; }
    [[nodiscard]] std::span<const std::byte> payload() const { return payload_; }

private:
    checkpoint::MappedFile file_;
    PackedIdentity identity_;
    std::span<const std::byte> payload_;
    std::vector<Xxh128> checksums_;
};

}  // namespace sluice::engine
