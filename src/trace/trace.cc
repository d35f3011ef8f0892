#include "trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/private_file.h"
#include "trace/read_number.h"

namespace sluice::trace {
namespace {

namespace json = boost::json;
using std::chrono::microseconds;

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// Takes the next line off `text`, without its end.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

Result<std::uint32_t> token_count(std::uint64_t value, std::string_view field) {
    if (value >= limits::kTraceTokens)
        return std::unexpected(Error::out_of_range(field, value, limits::kTraceTokens));
    // Traces count prompts and answers of nothing; what is sent has one token at least.
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(value, 1));
}

// ---- Mooncake -------------------------------------------------------------------------------------

Result<std::uint64_t> member(const json::object& row, std::string_view name) {
    const json::value* value = row.if_contains(name);
    if (value && value->is_int64() && value->get_int64() >= 0)
        return static_cast<std::uint64_t>(value->get_int64());
    return std::unexpected(
        Error::invalid("must be a whole number of at least 0", std::string(name)));
}

Result<std::uint32_t> token_member(const json::object& row, std::string_view name) {
    const auto count = member(row, name);
    if (!count) return std::unexpected(count.error());
    return token_count(*count, name);
}

Result<std::vector<std::uint32_t>> blocks_of(const json::object& row) {
    std::vector<std::uint32_t> blocks;
    const json::value* ids = row.if_contains("hash_ids");
    if (!ids) return blocks;
    const Error wrong = Error::invalid("must be an array of whole numbers below 2^32", "hash_ids");
    if (!ids->is_array()) return std::unexpected(wrong);
    blocks.reserve(ids->get_array().size());
    for (const json::value& id : ids->get_array()) {
        if (!id.is_int64() || !std::in_range<std::uint32_t>(id.get_int64()))
            return std::unexpected(wrong);
        blocks.push_back(static_cast<std::uint32_t>(id.get_int64()));
    }
    return blocks;
}

Result<TraceRequest> mooncake_row(std::string_view line) {
    json::monotonic_resource memory;
    json::error_code failure;
    const json::value value =
        json::parse(json::string_view(line.data(), line.size()), failure, &memory);
    if (failure || !value.is_object()) return std::unexpected(Error::invalid("is no JSON object"));
    const json::object& row = value.get_object();
    const auto timestamp = member(row, "timestamp");
    if (!timestamp) return std::unexpected(timestamp.error());
    if (*timestamp > limits::kTraceMilliseconds) {
        return std::unexpected(
            Error::out_of_range("timestamp", *timestamp, limits::kTraceMilliseconds));
    }
    const auto input = token_member(row, "input_length");
    if (!input) return std::unexpected(input.error());
    const auto output = token_member(row, "output_length");
    if (!output) return std::unexpected(output.error());
    auto blocks = blocks_of(row);
    if (!blocks) return std::unexpected(blocks.error());
    return TraceRequest{.arrival = std::chrono::milliseconds(*timestamp),
                        .input_tokens = *input,
                        .output_tokens = *output,
                        .blocks = std::move(*blocks)};
}

// ---- Azure ----------------------------------------------------------------------------------------

/// "2023-11-16 18:17:03.9799600": time since 1970; the fraction has up to nine digits.
std::optional<microseconds> read_timestamp(std::string_view text) {
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
        text[13] != ':' || text[16] != ':')
        return std::nullopt;
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    unsigned second = 0;
    if (!read_number(text.substr(0, 4), year) || !read_number(text.substr(5, 2), month) ||
        !read_number(text.substr(8, 2), day) || !read_number(text.substr(11, 2), hour) ||
        !read_number(text.substr(14, 2), minute) || !read_number(text.substr(17, 2), second))
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(day)};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    std::uint64_t fraction = 0;
    if (text.size() > 19) {
        std::string digits(text.substr(20));
        if (text[19] != '.' || digits.empty() || digits.size() > 9) return std::nullopt;
        digits.resize(6, '0');
        if (!read_number(std::string_view(digits), fraction)) return std::nullopt;
    }
    return std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
           std::chrono::minutes(minute) + std::chrono::seconds(second) + microseconds(fraction);
}

Result<TraceRequest> azure_row(std::string_view line) {
    const std::size_t first = line.find(',');
    const std::size_t second = first == std::string_view::npos ? first : line.find(',', first + 1);
    if (second == std::string_view::npos)
        return std::unexpected(Error::invalid("must have three columns"));
    const auto arrival = read_timestamp(line.substr(0, first));
    if (!arrival) {
        return std::unexpected(
            Error::invalid("must be a time like 2023-11-16 18:17:03.97996", "TIMESTAMP"));
    }
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    if (!read_number(line.substr(first + 1, second - first - 1), input))
        return std::unexpected(Error::invalid("must be a whole number", "ContextTokens"));
    if (!read_number(line.substr(second + 1), output))
        return std::unexpected(Error::invalid("must be a whole number", "GeneratedTokens"));
    const auto input_tokens = token_count(input, "ContextTokens");
    if (!input_tokens) return std::unexpected(input_tokens.error());
    const auto output_tokens = token_count(output, "GeneratedTokens");
    if (!output_tokens) return std::unexpected(output_tokens.error());
    return TraceRequest{.arrival = *arrival,
                        .input_tokens = *input_tokens,
                        .output_tokens = *output_tokens,
                        .blocks = {}};
}

/// Times from the first request on.
void normalise(std::vector<TraceRequest>& requests) {
    std::ranges::stable_sort(requests, {}, &TraceRequest::arrival);
    const microseconds start = requests.front().arrival;
    for (TraceRequest& request : requests) request.arrival -= start;
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, std::string name) {
    Trace trace{.name = std::move(name), .requests = {}};
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::size_t number = 1;
    const bool azure = text.starts_with(kAzureHeader);
    if (azure) {
        take_line(text);
        ++number;
    }
    for (; !text.empty(); ++number) {
        const std::string_view line = take_line(text);
        if (line.empty()) continue;
        const std::string place = fmt::format("{}:{}", trace.name, number);
        if (trace.requests.size() == limits::kTraceRequests) {
            return std::unexpected(
                Error(ErrorCode::kOutOfRange,
                      fmt::format("is one request more than {}", limits::kTraceRequests), place));
        }
        auto request = azure ? azure_row(line) : mooncake_row(line);
        if (!request) return std::unexpected(request.error().within(place));
        trace.requests.push_back(std::move(*request));
    }
    if (trace.requests.empty())
        return std::unexpected(Error::invalid("holds no requests", trace.name));
    normalise(trace.requests);
    return trace;
}

Result<Trace> read_trace(const std::string& path) {
    const auto text = read_small_file(path, limits::kTraceFileBytes);
    if (!text) return std::unexpected(text.error());
    return parse_trace(*text, path);
}

}  // namespace sluice::trace
