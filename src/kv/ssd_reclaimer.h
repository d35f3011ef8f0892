#pragma once

// Makes room by whole segments: what is worth it (kv/ssd_salvage.h) is carried over into the open
// segment of its class, the rest goes with the file, and with it what follows it elsewhere: nothing
// outlives what it follows. So chains go from their tails, or as a whole.
//
// At most half a segment is carried, so that every reclaim gains room; and the room that carrying needs
// is kept free by whoever asks for room (`make_room`). What nobody has used is carried for the sake of
// what follows it alone, within a fifth of what puts write: that bounds what it costs in wear.
//
// Blocking; the thread that writes.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "kv/ssd_appender.h"
#include "kv/ssd_buffers.h"
#include "kv/ssd_life_keeper.h"

namespace sluice::kv {

class SsdReclaimer {
public:
    SsdReclaimer(SsdState& state, const SsdDirectory& directory, const SsdOptions& options,
                 SsdAppender& appender, SsdLifeKeeper& lives, SsdSpace& space)
        : state_(state),
          directory_(directory),
          options_(options),
          appender_(appender),
          lives_(lives),
          space_(space),
          bytes_max_(options.bytes),
          buffers_(std::make_shared<SsdBuffers>(0)) {}

    /// Reclaims until one more segment may be opened. Error `kExhausted`: nothing is left to reclaim.
    [[nodiscard]] Result<void> make_room();
    /// As at a start with a lower limit: reclaims until the files are below it.
    void shrink();
    /// The disk has no more than we take now. Each segment that can be opened all the same lets the
    /// bound grow again.
    void disk_is_full();
    void segment_opened();
    /// Nothing lives in it any more.
    void remove_dead(std::uint64_t number);

    [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }

private:
    struct Hot {
        std::string name;
        std::uint32_t slot = 0;
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        std::int64_t expires_ms = 0;
    };
    struct Victim {
        SsdSegmentHeader header;
        std::shared_ptr<SsdFile> file;
        std::vector<Hot> hot;
    };

    [[nodiscard]] bool has_room() const;
    /// False: there is nothing to reclaim.
    [[nodiscard]] bool choose(Victim& victim);
    [[nodiscard]] std::optional<std::uint64_t> choose_segment(std::int64_t now_ms);
    [[nodiscard]] bool is_over(const SsdIndex::Entry& entry, std::int64_t now_ms) const;
    /// What may be carried of what nobody has used.
    [[nodiscard]] std::uint64_t allowance();
    [[nodiscard]] bool reclaim_one();
    void carry(const Victim& victim);
    /// False: no more can be carried.
    [[nodiscard]] bool carry(const Victim& victim, const Hot& hot);
    struct Ended {
        std::uint64_t kin = 0;
        SsdIndex::Cursor seen{};  ///< Of its followers.
    };
    /// Of what is still in the segment: those that nobody has used.
    void end_followers(std::uint64_t number);
    void end_followers_of(std::vector<Ended> ended);
    void remove(std::uint64_t number, std::shared_ptr<SsdFile> file);

    SsdState& state_;
    const SsdDirectory& directory_;
    const SsdOptions& options_;
    SsdAppender& appender_;
    SsdLifeKeeper& lives_;
    SsdSpace& space_;
    std::atomic<std::uint64_t> bytes_max_;
    std::shared_ptr<SsdBuffers> buffers_;
    std::uint64_t allowance_ = 0;
    std::uint64_t allowed_for_ = 0;  ///< Bytes of puts that are in it.
};

}  // namespace sluice::kv
