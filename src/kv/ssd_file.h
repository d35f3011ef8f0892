#pragma once

// One segment's file: read and written past the page cache where the file system allows it, with the
// planted faults of disks in every step.
//
// Threads: reads from any, all else from one. A file that is removed stays readable, and its bytes
// claimed, as long as somebody has it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "kv/ssd_faults.h"
#include "kv/ssd_space.h"

namespace sluice::kv {

enum class SsdAccess : std::uint8_t { kDirect, kCached };

class SsdFile {
public:
    /// A new file with room for `bytes`, which `claim` covers. Errors: `kExhausted`: the disk is full;
    /// `kIo`. `faults` outlive the file.
    [[nodiscard]] static Result<std::shared_ptr<SsdFile>> create(std::string path,
                                                                 std::uint64_t bytes,
                                                                 SsdAccess access,
                                                                 const SsdFaults& faults,
                                                                 SsdSpace::Claim claim);
    [[nodiscard]] static Result<std::shared_ptr<SsdFile>> open(std::string path, SsdAccess access,
                                                               const SsdFaults& faults,
                                                               SsdSpace::Claim claim);

    /// All of `bytes`, which start at a sector in memory and on disk and are whole sectors.
    /// Errors: `kIo`; `kExhausted`: the disk is full; reading `kCorrupt`: the file ends before.
    [[nodiscard]] Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset);
    [[nodiscard]] Result<void> read(std::span<std::byte> bytes, std::uint64_t offset) const;
    /// Until what was written is on disk.
    [[nodiscard]] Result<void> sync();
    /// The file ends after `bytes`; what was reserved behind is free again.
    [[nodiscard]] Result<void> truncate(std::uint64_t bytes);
    [[nodiscard]] Result<std::uint64_t> size() const;

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] SsdAccess access() const { return access_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] SsdSpace::Claim& claim() { return claim_; }

    SsdFile(std::string path, UniqueFd fd, SsdAccess access, const SsdFaults& faults,
            SsdSpace::Claim claim);

private:
    SsdSpace::Claim claim_;  ///< Before fd_: it ends after the file is closed.
    const std::string path_;
    UniqueFd fd_;
    const SsdAccess access_;
    const SsdFaults& faults_;
};

}  // namespace sluice::kv
