#pragma once

// Fetching blocks from another worker: those of a hand-over, which it holds, and what it has.
//
// POST /kv/pull answers with a stream of block values (kv/block_value.h), back to back: those of the
// wanted keys that the worker has, in this order. What is not in the answer is not there.
// POST /kv/release ends a hold; of one that has ended, or never was, it is no error.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace sluice::port {

struct KvPullRequest {
    std::string hold;  ///< kRidLength lower-case hexadecimal digits, or empty: what is there.
    std::vector<Sha256Digest> keys;  ///< Wanted; a tail's, too.
    std::string tenant{};  ///< Whose they are: then the worker's memory is looked at, too.
    bool operator==(const KvPullRequest&) const = default;
};

struct KvReleaseRequest {
    std::string hold;
    bool operator==(const KvReleaseRequest&) const = default;
};

[[nodiscard]] std::string to_json(const KvPullRequest& request);
[[nodiscard]] std::string to_json(const KvReleaseRequest& request);

/// Errors name the field.
[[nodiscard]] Result<KvPullRequest> parse_kv_pull_request(std::string_view json);
[[nodiscard]] Result<KvReleaseRequest> parse_kv_release_request(std::string_view json);

}  // namespace sluice::port
