#pragma once

// Hit shares over the size of a cache, as a picture.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cache_replay.h"

namespace sluice::sim {

struct CacheRun {
    SharedCacheOptions options;
    CacheResults results;
};

/// Of one trace: a curve for each policy and number of nodes over the sizes of its runs, and the share
/// that a cache without end would find (a run of 0 blocks), if there is one. A complete SVG file.
[[nodiscard]] std::string cache_svg(const std::string& title, const std::vector<CacheRun>& runs);

}  // namespace sluice::sim
