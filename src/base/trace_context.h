#pragma once

// W3C Trace Context (https://www.w3.org/TR/trace-context/): which trace a request belongs to, so that
// what the gateway and the engines behind it did shows up in the caller's trace.

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

struct TraceContext {
    std::string trace_id;   ///< 32 lower-case hexadecimal digits; empty without a trace.
    std::string parent_id;  ///< 16, of the caller's span; empty if the trace begins here.
    std::string span_id;    ///< 16, of ours.
    bool sampled = true;    ///< Whether the caller records the trace.

    bool operator==(const TraceContext&) const = default;
};

/// The span of a request that came with this `traceparent` header: a child of the caller's. Without
/// the header, or if it is malformed, a trace of its own. Ids are random.
[[nodiscard]] TraceContext continue_trace(std::optional<std::string_view> traceparent);

/// What goes on to the next hop: "00-TRACE-SPAN-01".
[[nodiscard]] std::string to_traceparent(const TraceContext& context);

/// A new id for a span.
[[nodiscard]] std::string draw_span_id();

}  // namespace sluice
