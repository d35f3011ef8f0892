#pragma once

// Blocks as files of a directory that many machines share (3FS, NFS, Lustre): any process that
// mounts it reads what any other has written, and nobody runs a server for it.
//
//   ROOT/ab/cd/kv:tenant:class:abcd…   one block, as kv/block_value.h has it; ab, cd: the key's digits
//   ROOT/ab/cd/.tmp-…                  a block that is being written
//   ROOT/ab/.swept                     when that folder was last looked through (directory_sweep.h)
//
// Nothing is asked of the file system but that a rename is seen whole or not at all. A block is
// written beside its place and renamed to it, without waiting for the disk: what a crash leaves torn
// fails its checksum, is removed, and computed again. A file's time of modification says when the block
// was last used; its class says how long it lives from then on. Clocks of the machines have to agree
// as well as lives are long: within minutes.
//
// No limit of bytes is kept: no process knows what the others write. Quotas of the file system do that;
// a full one is an error here, and no worse.
//
// Calls wait for the file system: never from an event loop's thread. Any thread, and as many as like.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/unique_fd.h"
#include "kv/block_name.h"
#include "kv/retention.h"
#include "kv/shared_bytes.h"

namespace sluice::kv {

/// Files that are being written are named so.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";
/// What such a one may take before it counts as left over from a crash.
inline constexpr std::chrono::hours kTemporaryLife{1};

class BlockDirectory {
public:
    enum class Written : std::uint8_t { kStored, kWasThere, kDiffers };

    /// Makes the directory if it isn't there. An error if blocks can't be kept in it.
    [[nodiscard]] static Result<BlockDirectory> open(std::filesystem::path root,
                                                     const RetentionTimes& times,
                                                     const FaultPoints& faults);

    /// Whether it is there and lives; it may be broken all the same.
    [[nodiscard]] bool contains(const BlockName& name, WallTime now) const;

    /// The block's value, checked. `kNotFound` if it isn't there or its time is over; `kCorrupt` if
    /// it was broken or another block, and has been removed; `kUnsupported` if it is of another
    /// version, which stays; `kIo` for what the system refuses.
    [[nodiscard]] Result<SharedBytes> read(const BlockName& name, WallTime now) const;

    /// Keeps `value`, an encoded block. If there is one already, their headers are compared, and the
    /// one that is there lives anew. Two that write the same name at the same time both succeed.
    [[nodiscard]] Result<Written> write(const BlockName& name, std::string_view value,
                                        WallTime now) const;

    /// The block was used. Nothing happens if it isn't there.
    void touch(const BlockName& name, WallTime now) const;

    [[nodiscard]] const std::filesystem::path& root() const { return root_; }
    [[nodiscard]] const RetentionTimes& times() const { return times_; }

private:
    struct File {
        UniqueFd fd;
        std::size_t bytes = 0;
        WallTime used;
    };

    BlockDirectory(std::filesystem::path root, const RetentionTimes& times,
                   const FaultPoints& faults)
        : root_(std::move(root)), times_(times), faults_(faults) {}

    [[nodiscard]] std::string path_of(const BlockName& name) const;
    [[nodiscard]] bool lives(const BlockName& name, WallTime used, WallTime now) const;
    [[nodiscard]] Result<File> open_file(const BlockName& name, WallTime now) const;
    [[nodiscard]] Result<std::string> read_bytes(const File& file, std::size_t bytes) const;
    /// What is there already under the name: nothing if it is of no use and may be written over.
    [[nodiscard]] std::optional<Written> compare(const BlockName& name, std::string_view value,
                                                 WallTime now) const;
    [[nodiscard]] Result<void> write_file(const std::string& path, std::string_view value,
                                          WallTime now) const;

    std::filesystem::path root_;
    RetentionTimes times_;
    FaultPoints faults_;
};

}  // namespace sluice::kv
