#include "sim/sim_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "record/card_style.h"
#include "record/html_text.h"
#include "record/svg_plot.h"

namespace sluice::sim {
namespace {

constexpr auto kStyles = std::to_array<const char*>({"run0", "run1", "run2", "run3"});
/// Of a curve.
constexpr int kPoints = 200;

/// A curve's colour, by the run.
constexpr const char* kRunStyle = R"css(
svg .run0 { stroke: #0f9488; } svg .run1 { stroke: #64748b; }
svg .run2 { stroke: #d97706; } svg .run3 { stroke: #db2777; }
)css";

/// Of a picture by itself; on a page the card's style says it.
constexpr const char* kPictureStyle = R"css(
svg { background: #ffffff; }
svg text { font: 11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; fill: #67717a; }
svg text.legend { fill: #1d2328; }
svg text.title { fill: #1d2328; font-weight: 600; font-size: 13px; }
svg .grid { stroke: #e3e1da; stroke-width: 1; }
svg .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
)css";

std::string style_of(std::size_t run) { return kStyles[run % kStyles.size()]; }

/// Makes a picture of a plot that was meant for a page.
std::string standalone(std::string svg) {
    const std::size_t tag = svg.find("<svg ");
    if (tag == std::string::npos) return svg;
    svg.insert(svg.find('>', tag) + 1,
               fmt::format("<style>{}{}</style>", kPictureStyle, kRunStyle));
    svg.insert(tag + 5, R"(xmlns="http://www.w3.org/2000/svg" )");
    return svg + "\n";
}

std::vector<record::Curve::Point> ttft_points(const TierResults& tier) {
    std::vector<record::Curve::Point> points;
    if (tier.ttft_ms.empty()) return points;
    const double completed =
        static_cast<double>(tier.completed) / static_cast<double>(tier.requests);
    for (int i = 1; i <= kPoints; ++i) {
        const double share = static_cast<double>(i) / kPoints;
        points.push_back({.ms = *tier.ttft_ms.quantile(share), .share = share * completed});
    }
    return points;
}

std::string ttft_plot(const std::vector<RunResult>& runs, const std::string& title,
                      const TierResults& (*tier)(const Results&)) {
    std::vector<record::Curve> curves;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        curves.push_back({.style = style_of(i),
                          .label = runs[i].title.policy,
                          .points = ttft_points(tier(runs[i].results))});
    }
    return record::plot_distributions(title, curves);
}

struct Frame {
    double width = 520.0;
    double height = 230.0;
    double left = 56.0;
    double right = 506.0;
    double top = 34.0;
    double bottom = 200.0;
};

/// Tokens a second, averaged over so many stretches that a curve has at most kPoints points.
std::vector<double> rates(const Timeline& timeline) {
    const auto stretches = timeline.stretches();
    const std::size_t step = std::max<std::size_t>(1, stretches.size() / kPoints);
    std::vector<double> rates;
    for (std::size_t i = 0; i < stretches.size(); i += step) {
        double tokens = 0.0;
        const std::size_t end = std::min(stretches.size(), i + step);
        for (std::size_t j = i; j < end; ++j) tokens += static_cast<double>(stretches[j].tokens);
        rates.push_back(tokens / (static_cast<double>(end - i) * seconds(timeline.width())));
    }
    return rates;
}

std::string throughput_curve(const Results& results, std::size_t run, double most, double length,
                             const Frame& frame) {
    const std::vector<double> points = rates(results.timeline);
    const auto span = static_cast<double>(results.timeline.stretches().size()) *
                      seconds(results.timeline.width());
    std::string path;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double at =
            span * (static_cast<double>(i) + 0.5) / static_cast<double>(points.size());
        path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L",
                            frame.left + (frame.right - frame.left) * at / length,
                            frame.bottom - (frame.bottom - frame.top) * points[i] / most);
    }
    return fmt::format(R"(<path class="curve {}" d="{}"/>)", style_of(run), path);
}

std::string throughput_plot(const std::vector<RunResult>& runs) {
    const Frame frame;
    double most = 1.0;
    double length = 1.0;
    for (const RunResult& run : runs) {
        for (const double rate : rates(run.results.timeline)) most = std::max(most, rate);
        length = std::max(length, seconds(run.results.timeline.width()) *
                                      static_cast<double>(run.results.timeline.stretches().size()));
    }
    std::string svg =
        fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="Tokens a second">)"
                    R"(<text class="title" x="{:.0f}" y="18">Tokens a second</text>)",
                    frame.width, frame.height, frame.left);
    for (int i = 0; i <= 4; ++i) {
        const double y = frame.bottom - (frame.bottom - frame.top) * i / 4.0;
        const double x = frame.left + (frame.right - frame.left) * i / 4.0;
        svg += fmt::format(
            R"(<line class="grid" x1="{0:.1f}" y1="{2:.1f}" x2="{1:.1f}" y2="{2:.1f}"/>)"
            R"(<text class="axis" x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5:.0f}</text>)"
            R"(<text class="axis" x="{6:.1f}" y="{7:.1f}" text-anchor="middle">{8:.0f} s</text>)",
            frame.left, frame.right, y, frame.left - 6, y + 4, most * i / 4.0, x, frame.bottom + 18,
            length * i / 4.0);
    }
    for (std::size_t i = 0; i < runs.size(); ++i)
        svg += throughput_curve(runs[i].results, i, most, length, frame);
    return svg + "</svg>";
}

std::string row(const RunResult& run, std::string_view name, const TierResults& tier) {
    const auto number = [](const std::optional<double>& value) {
        return value ? fmt::format("{:.1f}", *value) : std::string("-");
    };
    const auto whole = static_cast<double>(std::max<std::uint64_t>(tier.requests, 1));
    return fmt::format(
        R"(<tr><td class="left">{}</td><td class="left">{}</td><td>{}</td><td>{:.1f} %</td>)"
        R"(<td>{:.1f} %</td><td>{:.1f} %</td><td>{}</td><td>{}</td><td>{}</td></tr>)"
        "\n",
        record::escape_html(run.title.policy), record::escape_html(name), tier.requests,
        100.0 * static_cast<double>(tier.rejected) / whole,
        100.0 * static_cast<double>(tier.good) / whole, 100.0 * tier.hit_share(),
        number(tier.ttft_ms.quantile(0.5)), number(tier.ttft_ms.quantile(0.9)),
        number(tier.ttft_ms.quantile(0.99)));
}

std::string table(const std::vector<RunResult>& runs) {
    std::string html =
        R"(<div class="sheet"><table><tr><th class="left">policy</th><th class="left">prompt</th>)"
        R"(<th>requests</th><th>rejected</th><th>good</th><th>cached</th><th>TTFT p50 ms</th>)"
        "<th>p90</th><th>p99</th></tr>\n";
    for (const RunResult& run : runs) {
        html += row(run, "all", run.results.all);
        for (int tier = 0; tier < kLengthBuckets; ++tier) {
            const TierResults& each = run.results.tiers[static_cast<std::size_t>(tier)];
            if (each.requests > 0)
                html += row(run, to_string(static_cast<LengthBucket>(tier)), each);
        }
    }
    return html + "</table></div>\n";
}

const TierResults& all(const Results& results) { return results.all; }
const TierResults& shortest(const Results& results) { return results.tiers.front(); }

}  // namespace

std::string ttft_svg(const std::vector<RunResult>& runs) {
    return standalone(ttft_plot(runs, "Time to first token", all));
}

std::string throughput_svg(const std::vector<RunResult>& runs) {
    return standalone(throughput_plot(runs));
}

std::string to_html(const std::vector<RunResult>& runs) {
    std::string html = fmt::format(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<title>Simulation</title><style>{}{}</style></head><body><main>\n<h1>Simulation</h1>\n",
        record::kCardStyle, kRunStyle);
    for (const RunResult& run : runs) {
        std::string text = to_text(run.title, run.results);
        html += fmt::format("<p>{}</p>\n", record::escape_html(text.substr(0, text.find("\n\n"))));
    }
    html += R"(<div class="plots">)";
    for (const std::string& plot :
         {ttft_plot(runs, "Time to first token", all),
          ttft_plot(runs, "Time to first token, prompts of at most 16 K tokens", shortest),
          throughput_plot(runs)}) {
        if (!plot.empty()) html += fmt::format("<div class=\"plot\">{}</div>\n", plot);
    }
    html += "</div>\n<h2>By length of the prompt</h2>\n" + table(runs);
    return html + "</main></body></html>\n";
}

}  // namespace sluice::sim
