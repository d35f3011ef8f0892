#include "kvnode/kv_event_query.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "net/query.h"

namespace sluice::kvnode {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

/// A field's number; nothing if it is absent, and an error if it is none.
Result<std::optional<std::uint64_t>> number_of(const Fields& fields, std::string_view name) {
    const auto field = fields.find(name);
    if (field == fields.end()) return std::nullopt;
    const std::string& text = field->second;
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stop == text.data() + text.size()) return number;
    return std::unexpected(Error::invalid("this must be a whole number", std::string(name)));
}

}  // namespace

Result<port::KvEventQuery> parse_kv_event_query(std::string_view text) {
    const auto fields = net::parse_query(text);
    if (!fields) return std::unexpected(fields.error());
    port::KvEventQuery query;
    if (const auto epoch = fields->find("epoch"); epoch != fields->end())
        query.epoch = epoch->second;
    constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
    for (const char* name : {"from", "page", "wait_ms", "rank"}) {
        const auto number = number_of(*fields, name);
        if (!number) return std::unexpected(number.error());
        if (!*number) continue;
        const std::string_view field(name);
        const auto small = static_cast<std::uint32_t>(std::min(**number, kMost32));
        if (field == "from") query.from = **number;
        if (field == "page") query.page = **number;
        if (field == "wait_ms") query.wait_ms = small;
        if (field == "rank") query.rank = small;
    }
    return query;
}

}  // namespace sluice::kvnode
