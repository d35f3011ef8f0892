#include "worker/kv_event_handler.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <optional>

#include "net/query.h"
#include "port/kv_events.h"
#include "worker/answers.h"

namespace sluice::worker {
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

Result<port::KvEventQuery> parse(std::string_view text) {
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

}  // namespace

void handle_kv_events(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    if (service.ranks.empty()) {
        return exchange->respond(error_answer(503, port::kNotReady, "the model is still loading"));
    }
    const auto query = parse(exchange->request().query);
    if (!query) {
        return exchange->respond(error_answer(400, port::kInvalidRequest, query.error().message(),
                                              query.error().place()));
    }
    if (query->rank >= service.ranks.size()) {
        return exchange->respond(error_answer(
            400, port::kInvalidRequest,
            fmt::format("this worker has {} ranks, counted from 0", service.ranks.size()), "rank"));
    }
    service.ranks[query->rank]->feed->answer(*query, exchange);
}

}  // namespace sluice::worker
