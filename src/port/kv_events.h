#pragma once

// GET /kv_events: which blocks a worker's pool has, as a stream of changes, so that others can say
// where a prompt's prefix lies.
//
// An epoch is one life of one pool. Within it events are numbered; who asks from a number that is no
// longer kept, or in another epoch, gets a page with `reset`: it forgets what it knew, and the events
// are a snapshot, page by page. A snapshot's pages may be older than changes that come after them;
// events are idempotent (stored twice, removed and not there), so that at the end all is right.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace sluice::port {

enum class KvEventType : std::uint8_t { kStored, kRemoved, kCleared };

struct KvEvent {
    KvEventType type = KvEventType::kStored;
    /// Of a stored run: the block before its first; nothing if the run starts a sequence.
    std::optional<Sha256Digest> parent{};
    /// Stored: a chain, each the parent of the next. Removed: in any order. Cleared: none.
    std::vector<Sha256Digest> keys{};
    std::string tier = "pool";  ///< Of stored ones.
    bool operator==(const KvEvent&) const = default;
};

struct KvEventPage {
    std::string epoch;                  ///< Lower-case hexadecimal digits.
    std::uint64_t next = 0;             ///< Where the next question starts.
    std::optional<std::uint64_t> page;  ///< A snapshot that goes on: what to ask for beside `next`.
    bool reset = false;                 ///< Forget what was known before this page.
    std::vector<KvEvent> events;
    bool operator==(const KvEventPage&) const = default;
};

/// A question. The first one of a reader has no epoch.
struct KvEventQuery {
    std::string epoch{};
    std::uint64_t from = 0;
    std::optional<std::uint64_t> page{};
    std::uint32_t wait_ms = 0;  ///< How long the answer may wait for something new.
    std::uint32_t rank = 0;
    bool operator==(const KvEventQuery&) const = default;

    /// The question that follows the answer `page`.
    [[nodiscard]] KvEventQuery after(const KvEventPage& page) const;
    /// "/kv_events?epoch=…&from=…&wait_ms=…"
    [[nodiscard]] std::string target() const;
};

[[nodiscard]] std::string to_json(const KvEventPage& page);

/// Errors name the field. Keys are bounded by kPortBlockKeys over all events of a page.
[[nodiscard]] Result<KvEventPage> parse_kv_event_page(std::string_view json);

}  // namespace sluice::port
