#pragma once

// Finds again what a segment file holds: from its footer, or, where its writer was torn away from it,
// entry by entry. Nothing is believed that has no checksum of its own; what isn't ours stays as it is.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kv/ssd_buffers.h"
#include "kv/ssd_directory.h"
#include "kv/ssd_file.h"
#include "kv/ssd_format.h"
#include "kv/ssd_lives.h"

namespace sluice::kv {

struct SsdFoundSegment {
    SsdSegmentHeader header;
    std::shared_ptr<SsdFile> file;
    std::vector<SsdRecord> records;  ///< By offset.
    std::vector<SsdLife> lives;
    bool torn = false;             ///< It had no footer, and was searched.
    std::uint64_t bytes_read = 0;  ///< To find all this.
};

class SsdRecovery {
public:
    SsdRecovery(const SsdDirectory& directory, SsdAccess access, const SsdFaults& faults,
                SsdSpace& space);

    /// Nothing: a file that was only just begun, and is removed. A torn segment gets a footer behind
    /// its last whole entry; one whose footer is damaged stays as it is. Errors: `kCorrupt`, `kUnsupported`: no segment of ours, left as it is;
    /// `kIo`: can't be read.
    [[nodiscard]] Result<std::optional<SsdFoundSegment>> recover(std::uint64_t number) const;

private:
    [[nodiscard]] Result<void> find_header(SsdFoundSegment& segment, std::uint64_t number) const;
    enum class Footer { kRead, kDamaged, kNone };

    [[nodiscard]] Result<Footer> read_footer(SsdFoundSegment& segment, std::uint64_t bytes) const;
    void cut_tail(SsdFoundSegment& segment) const;
    [[nodiscard]] Result<void> search(SsdFoundSegment& segment, std::uint64_t bytes) const;
    /// The entry at `offset`, if there is a whole one.
    [[nodiscard]] Result<std::optional<SsdRecord>> entry_at(SsdFoundSegment& segment,
                                                            std::uint64_t offset,
                                                            std::uint64_t bytes) const;
    [[nodiscard]] Result<std::shared_ptr<std::byte>> read(SsdFoundSegment& segment,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) const;

    const SsdDirectory& directory_;
    const SsdAccess access_;
    const SsdFaults& faults_;
    SsdSpace& space_;
    std::shared_ptr<SsdBuffers> buffers_;
};

}  // namespace sluice::kv
