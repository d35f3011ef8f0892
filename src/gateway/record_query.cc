#include "gateway/record_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/units.h"

namespace sluice::gateway {
namespace {

constexpr std::string_view kDefaultSince = "1h";

std::string_view value_of(const QueryFields& fields, std::string_view name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

Result<void> check_names(const QueryFields& fields, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : fields) {
        if (std::ranges::find(known, name) == known.end())
            return std::unexpected(Error::invalid("is not known here", name));
    }
    return {};
}

Result<std::uint64_t> read_count(const QueryFields& fields, std::string_view name,
                                 std::uint64_t otherwise) {
    const std::string_view text = value_of(fields, name);
    if (text.empty()) return otherwise;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        return std::unexpected(Error::invalid("must be a whole number", std::string(name)));
    return number;
}

Result<std::int64_t> read_since(const QueryFields& fields, std::int64_t now_ms) {
    std::string_view text = value_of(fields, "since");
    if (text.empty()) text = kDefaultSince;
    const auto since = parse_duration(text);
    if (!since) return std::unexpected(since.error().within("since"));
    return now_ms - since->count();
}

}  // namespace

std::int64_t unix_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

Result<record::RecordQuery> read_record_query(const QueryFields& fields, std::int64_t now_ms) {
    if (const auto known = check_names(fields, {"since", "pool", "role", "id", "limit"}); !known)
        return std::unexpected(known.error());
    record::RecordQuery query{.pool = std::string(value_of(fields, "pool")),
                              .id = std::string(value_of(fields, "id"))};
    if (query.id.empty() || fields.contains("since")) {
        const auto since = read_since(fields, now_ms);
        if (!since) return std::unexpected(since.error());
        query.since_ms = *since;
    }
    if (const std::string_view role = value_of(fields, "role"); !role.empty()) {
        query.role = parse_role(role);
        if (!query.role) return std::unexpected(Error::invalid("is answer or shadow", "role"));
    }
    const auto limit = read_count(fields, "limit", query.limit);
    if (!limit) return std::unexpected(limit.error());
    query.limit = *limit;
    return query;
}

Result<record::CardOptions> read_card_query(const QueryFields& fields, std::int64_t now_ms) {
    if (const auto known =
            check_names(fields, {"baseline", "candidate", "since", "min_samples", "format"});
        !known)
        return std::unexpected(known.error());
    record::CardOptions options{.baseline = std::string(value_of(fields, "baseline")),
                                .candidate = std::string(value_of(fields, "candidate"))};
    if (options.baseline.empty())
        return std::unexpected(Error::invalid("must name a pool", "baseline"));
    if (options.candidate.empty())
        return std::unexpected(Error::invalid("must name a pool", "candidate"));
    const auto since = read_since(fields, now_ms);
    if (!since) return std::unexpected(since.error());
    options.since = fields.contains("since") ? value_of(fields, "since") : kDefaultSince;
    options.from_ms = *since;
    options.to_ms = now_ms;
    const auto samples = read_count(fields, "min_samples", options.min_samples);
    if (!samples) return std::unexpected(samples.error());
    options.min_samples = *samples;
    return options;
}

}  // namespace sluice::gateway
