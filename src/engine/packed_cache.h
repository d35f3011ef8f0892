#pragma once

// Where packed weights come from: a file beside the model or, where that folder can't be written to, in
// the user's cache folder; else memory. A cache is never wrong: a file that is damaged, cut short or of
// other weights is reported in one line and built again, and a model whose file can't be written is
// packed in memory with a warning.
//
// Processes that start together pack once: the first locks `FILE.tmp`, the others wait for it and map
// what it wrote. The lock dies with its holder, and the next one starts the file anew.

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/thread_team.h"
#include "checkpoint/gguf_file.h"
#include "engine/packed_file.h"
#include "engine/weight_plan.h"
#include "tensor/aligned_buffer.h"

namespace sluice::engine {

enum class PackedUse : std::uint8_t {
    kOff,      ///< Always packs in memory.
    kAuto,     ///< Writes files for models of `least_bytes` and more; reads any.
    kRefresh,  ///< Makes sure that there is a file, whatever the size.
};

struct PackedOptions {
    PackedUse use = PackedUse::kAuto;
    std::filesystem::path folder;  ///< Instead of the model's own if not empty.
    /// The second choice where the model's folder can't be written to; empty for none.
    std::filesystem::path fallback;
    std::size_t least_bytes = limits::kPackedCacheBytes;  ///< For kAuto to write a file.
    PackProgress progress;

    /// What SLUICE_PACKED says: `off`, or a folder, which is then the only one; unset is kAuto with the
    /// user's cache folder ($XDG_CACHE_HOME/sluice or ~/.cache/sluice) as the second choice.
    [[nodiscard]] static PackedOptions from_environment();
};

/// Packed weights in memory, however they came there.
struct PackedWeights {
    std::string fingerprint;  ///< Of the checkpoint.
    std::size_t bytes = 0;
    std::filesystem::path path;  ///< Empty if they are in memory of this process alone.
    bool is_new = false;         ///< Packed just now.
    PackedFile file;
    tensor::AlignedBuffer memory;

    [[nodiscard]] const std::byte* data() const {
        return path.empty() ? memory.data() : file.payload().data();
    }
};

class PackedCache {
public:
    /// `plan` is that of `checkpoint`, which was opened at `model`. All outlive the cache.
    PackedCache(const checkpoint::GgufFile& checkpoint, const std::filesystem::path& model,
                const WeightPlan& plan, ThreadTeam& team, PackedOptions options);

    /// With kRefresh an error (`kIo`) if no file could be written; else there are always weights.
    [[nodiscard]] Result<PackedWeights> obtain();

private:
    [[nodiscard]] std::vector<std::filesystem::path> places() const;
    /// `kNotFound` if there is no file; other errors say why the one that is there can't be used.
    [[nodiscard]] Result<PackedWeights> find(const std::filesystem::path& path);
    [[nodiscard]] Result<void> check(const PackedFile& file);
    [[nodiscard]] Result<PackedWeights> build(const std::filesystem::path& path);
    [[nodiscard]] PackedWeights in_memory();
    [[nodiscard]] const std::string& fingerprint();

    const checkpoint::GgufFile& checkpoint_;
    std::filesystem::path model_;
    const WeightPlan& plan_;
    ThreadTeam& team_;
    PackedOptions options_;
    Xxh128 digest_;
    std::string fingerprint_;  ///< Empty until somebody needs it: it costs reading the checkpoint.
};

}  // namespace sluice::engine
