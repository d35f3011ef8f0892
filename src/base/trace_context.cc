#include "base/trace_context.h"

#include <algorithm>
#include <random>

#include "base/hash.h"

namespace sluice {
namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
/// "00-", trace, "-", span, "-01"
constexpr std::size_t kLength = 3 + kTraceDigits + 1 + kSpanDigits + 3;

std::uint64_t draw() {
    thread_local std::mt19937_64 generator{[] {
        std::random_device device;
        return (std::uint64_t{device()} << 32U) | device();
    }()};
    std::uint64_t number = 0;
    while (number == 0) number = generator();  // Zero is no id.
    return number;
}

bool is_hex(std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
    return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

// A version above ours may have more behind the flags; what we know of it stands where it always did.
std::optional<TraceContext> parse(std::string_view text) {
    if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return std::nullopt;
    const std::string_view version = text.substr(0, 2);
    const std::string_view flags = text.substr(53, 2);
    if (!is_hex(version) || version == "ff" || !is_hex(flags)) return std::nullopt;
    if (version == "00" && text.size() != kLength) return std::nullopt;
    if (text.size() > kLength && text[kLength] != '-') return std::nullopt;
    TraceContext context{.trace_id = std::string(text.substr(3, kTraceDigits)),
                         .parent_id = std::string(text.substr(36, kSpanDigits))};
    if (!is_id(context.trace_id) || !is_id(context.parent_id)) return std::nullopt;
    const char last = flags[1];
    context.sampled = ((last <= '9' ? last - '0' : last - 'a' + 10) & 1) != 0;
    return context;
}

}  // namespace

std::string draw_span_id() {
    std::string id;
    append_hex(id, draw());
    return id;
}

TraceContext continue_trace(std::optional<std::string_view> traceparent) {
    std::optional<TraceContext> context;
    if (traceparent) context = parse(*traceparent);
    if (!context) context = TraceContext{.trace_id = draw_span_id() + draw_span_id()};
    context->span_id = draw_span_id();
    return *context;
}

std::string to_traceparent(const TraceContext& context) {
    std::string text;
    text.reserve(kLength);
    text.append("00-").append(context.trace_id).append("-").append(context.span_id);
    return text.append(context.sampled ? "-01" : "-00");
}

}  // namespace sluice
