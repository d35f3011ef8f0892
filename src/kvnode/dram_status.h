#pragma once

// What a tier in memory says at GET /kv/status, a worker's and a node's alike.

#include "kv/tier_stats.h"
#include "port/kv_status.h"

namespace sluice::kvnode {

[[nodiscard]] port::KvTierStatus dram_status(const kv::DramStats& stats);

}  // namespace sluice::kvnode
