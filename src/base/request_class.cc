#include "base/request_class.h"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

// In the order of the enums.
constexpr auto kOutcomeNames = std::to_array<std::string_view>(
    {"ok", "timeout_queue", "timeout_prefill", "timeout_decode", "client_gone", "worker_lost",
     "invalid_output", "rejected", "error"});
constexpr auto kKindNames =
    std::to_array<std::string_view>({"text", "seeded", "json_schema", "tools"});
constexpr auto kBucketNames =
    std::to_array<std::string_view>({"<=16k", "16k-64k", "64k-256k", ">256k"});
constexpr auto kRoleNames = std::to_array<std::string_view>({"answer", "shadow"});
constexpr auto kCauseNames = std::to_array<std::string_view>({"miss", "hole", "loss", "fallback"});

static_assert(kOutcomeNames.size() == kOutcomes && kKindNames.size() == kKinds &&
              kBucketNames.size() == kLengthBuckets);

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_string(Outcome outcome) {
    return kOutcomeNames[static_cast<std::size_t>(outcome)];
}
std::string_view to_string(RequestKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
std::string_view to_string(LengthBucket bucket) {
    return kBucketNames[static_cast<std::size_t>(bucket)];
}
std::string_view to_string(RequestRole role) { return kRoleNames[static_cast<std::size_t>(role)]; }
std::string_view to_string(RecomputeCause cause) {
    return kCauseNames[static_cast<std::size_t>(cause)];
}

std::optional<Outcome> parse_outcome(std::string_view name) {
    return find<Outcome>(kOutcomeNames, name);
}
std::optional<RequestKind> parse_kind(std::string_view name) {
    return find<RequestKind>(kKindNames, name);
}
std::optional<LengthBucket> parse_length_bucket(std::string_view name) {
    return find<LengthBucket>(kBucketNames, name);
}
std::optional<RequestRole> parse_role(std::string_view name) {
    return find<RequestRole>(kRoleNames, name);
}
std::optional<RecomputeCause> parse_recompute_cause(std::string_view name) {
    return find<RecomputeCause>(kCauseNames, name);
}

LengthBucket length_bucket(std::uint64_t prompt_tokens) {
    constexpr std::uint64_t kThousand = 1024;
    if (prompt_tokens <= 16 * kThousand) return LengthBucket::kTo16k;
    if (prompt_tokens <= 64 * kThousand) return LengthBucket::kTo64k;
    if (prompt_tokens <= 256 * kThousand) return LengthBucket::kTo256k;
    return LengthBucket::kMore;
}

}  // namespace sluice
