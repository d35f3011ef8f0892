#include "trace/load_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/assert.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "trace/random.h"
#include "trace/read_number.h"

namespace sluice::trace {
namespace {

using std::chrono::microseconds;

constexpr auto kKinds = std::to_array<std::string_view>({"text", "seeded", "json_schema", "tools"});

// After the quantiles of Azure's traces of conversations and of code completion (Splitwise, 2024).
constexpr std::string_view kChat = "200/60*2,1000/130*5,1200/400*2,2700/420";
constexpr std::string_view kCode = "150/10*2,1500/13*4,2700/24*3,5200/55";

Error wrong_shape(std::string_view item) {
    return Error::invalid(
        fmt::format("\"{}\" must be INPUT/OUTPUT tokens, as in 512/128:seeded*0.5", item), "mix");
}

/// Cuts what follows `mark` off `text`.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(at + 1);
    text = text.substr(0, at);
    return rest;
}

Result<Shape> parse_shape(std::string_view item) {
    Shape shape;
    std::string_view rest = item;
    if (const auto weight = cut(rest, '*');
        weight && (!read_number(*weight, shape.weight) || !(shape.weight > 0.0) ||
                   !std::isfinite(shape.weight)))
        return std::unexpected(wrong_shape(item));
    if (const auto kind = cut(rest, ':')) {
        const auto* const found = std::ranges::find(kKinds, *kind);
        if (found == kKinds.end()) {
            return std::unexpected(Error::invalid(
                fmt::format("\"{}\" is no kind of request{}", *kind, did_you_mean(*kind, kKinds)),
                "mix"));
        }
        shape.kind = static_cast<RequestKind>(found - kKinds.begin());
    }
    const auto output = cut(rest, '/');
    if (!output || !read_number(rest, shape.input_tokens) ||
        !read_number(*output, shape.output_tokens) || shape.input_tokens == 0 ||
        shape.output_tokens == 0 || shape.input_tokens > limits::kTraceTokens ||
        shape.output_tokens > limits::kTraceTokens)
        return std::unexpected(wrong_shape(item));
    return shape;
}

microseconds in_microseconds(double seconds) {
    return microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

/// What the trace's times are multiplied by to give `rate` arrivals a second.
double stretch(const std::vector<TraceRequest>& requests, std::size_t count,
               std::optional<double> rate) {
    if (!rate || count < 2) return 1.0;
    const double recorded = std::chrono::duration<double>(requests[count - 1].arrival).count();
    return recorded > 0.0 ? static_cast<double>(count - 1) / *rate / recorded : 1.0;
}

}  // namespace

Result<std::vector<Shape>> parse_mix(std::string_view text) {
    if (text == "chat") text = kChat;
    if (text == "code") text = kCode;
    std::vector<Shape> shapes;
    for (bool more = true; more;) {
        const std::string_view item = text.substr(0, text.find(','));
        more = item.size() < text.size();
        text.remove_prefix(more ? item.size() + 1 : item.size());
        auto shape = parse_shape(item);
        if (!shape) return std::unexpected(shape.error());
        shapes.push_back(*shape);
        if (shapes.size() > limits::kMixShapes)
            return std::unexpected(
                Error::out_of_range("shapes of a mix", shapes.size(), limits::kMixShapes));
    }
    return shapes;
}

std::vector<PlannedRequest> plan_load(const Trace& trace, const PlanOptions& options) {
    const std::size_t count = std::min(options.requests, trace.requests.size());
    const double factor = stretch(trace.requests, count, options.rate);
    Random random(options.seed);
    std::vector<PlannedRequest> plan;
    plan.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const TraceRequest& request = trace.requests[i];
        plan.push_back(
            {.at = in_microseconds(std::chrono::duration<double>(request.arrival).count() * factor),
             .input_tokens = request.input_tokens,
             .output_tokens = request.output_tokens,
             .kind = RequestKind::kText,
             .text_seed = random.next(),
             .blocks = request.blocks});
    }
    return plan;
}

std::vector<PlannedRequest> plan_load(const std::vector<Shape>& shapes,
                                      const PlanOptions& options) {
    SLUICE_ASSERT(!shapes.empty());
    const double total = std::accumulate(shapes.begin(), shapes.end(), 0.0,
                                         [](double sum, const Shape& s) { return sum + s.weight; });
    Random random(options.seed);
    double at = 0.0;
    std::vector<PlannedRequest> plan;
    plan.reserve(options.requests);
    for (std::size_t i = 0; i < options.requests; ++i) {
        double place = random.uniform() * total;
        std::size_t shape = 0;
        while (shape + 1 < shapes.size() && place >= shapes[shape].weight)
            place -= shapes[shape++].weight;
        if (options.rate) at += random.exponential() / *options.rate;
        plan.push_back({.at = in_microseconds(at),
                        .input_tokens = shapes[shape].input_tokens,
                        .output_tokens = shapes[shape].output_tokens,
                        .kind = shapes[shape].kind,
                        .text_seed = random.next(),
                        .blocks = {}});
    }
    return plan;
}

}  // namespace sluice::trace
