#include "sim/cache_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "record/html_text.h"

namespace sluice::sim {
namespace {

constexpr double kWidth = 620.0;
constexpr double kHeight = 300.0;
constexpr double kLeft = 56.0;
constexpr double kRight = 470.0;
constexpr double kTop = 34.0;
constexpr double kBottom = 262.0;
constexpr auto kColours =
    std::to_array<const char*>({"#0f9488", "#d97706", "#64748b", "#db2777", "#4f46e5", "#65a30d"});

constexpr const char* kStyle = R"css(
svg { background: #ffffff; }
text { font: 11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; fill: #67717a; }
text.title { fill: #1d2328; font-weight: 600; font-size: 13px; }
.grid { stroke: #e3e1da; stroke-width: 1; } .limit { stroke: #1d2328; stroke-dasharray: 4 3; }
.curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
)css";

struct Scale {
    double least = 1.0;  ///< Blocks.
    double most = 1.0;
    double top = 1.0;  ///< Share.

    [[nodiscard]] double x(double blocks) const {
        const double span = std::log(most / least);
        return span <= 0.0 ? kLeft : kLeft + (kRight - kLeft) * std::log(blocks / least) / span;
    }
    [[nodiscard]] double y(double share) const { return kBottom - (kBottom - kTop) * share / top; }
};

Scale scale_of(const std::vector<CacheRun>& runs) {
    Scale scale;
    std::uint32_t least = 0;
    std::uint32_t most = 1;
    double top = 0.1;
    for (const CacheRun& run : runs) {
        top = std::max(top, std::ceil(run.results.usable_share() * 10.0) / 10.0);
        if (run.options.blocks == 0) continue;
        least = least == 0 ? run.options.blocks : std::min(least, run.options.blocks);
        most = std::max(most, run.options.blocks);
    }
    scale.least = std::max(least, 1U);
    scale.most = most;
    scale.top = top;
    return scale;
}

std::string axes(const std::vector<CacheRun>& runs, const Scale& scale) {
    std::string svg;
    for (int i = 0; i <= 5; ++i) {
        const double share = scale.top * i / 5.0;
        svg += fmt::format(R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)"
                           R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:.0f} %</text>)",
                           kLeft, kRight, scale.y(share), scale.y(share), kLeft - 6,
                           scale.y(share) + 4, 100.0 * share);
    }
    std::set<std::uint32_t> sizes;
    for (const CacheRun& run : runs)
        if (run.options.blocks > 0) sizes.insert(run.options.blocks);
    for (const std::uint32_t size : sizes) {
        svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                           scale.x(size), kBottom + 16, size);
    }
    return svg + fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">blocks of 512 )"
                             R"(tokens in the cache</text>)",
                             (kLeft + kRight) / 2, kBottom + 32);
}

std::string limit_line(const std::vector<CacheRun>& runs, const Scale& scale) {
    const auto endless =
        std::ranges::find(runs, 0U, [](const CacheRun& run) { return run.options.blocks; });
    if (endless == runs.end()) return "";
    const double y = scale.y(endless->results.usable_share());
    return fmt::format(R"(<line class="limit" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)"
                       R"(<text x="{:.1f}" y="{:.1f}">without end: {:.1f} %</text>)",
                       kLeft, kRight, y, y, kRight + 10, y + 4,
                       100.0 * endless->results.usable_share());
}

}  // namespace

std::string cache_svg(const std::string& title, const std::vector<CacheRun>& runs) {
    const Scale scale = scale_of(runs);
    std::map<std::pair<CachePolicy, std::uint32_t>, std::map<std::uint32_t, double>> curves;
    for (const CacheRun& run : runs)
        if (run.options.blocks > 0)
            curves[{run.options.policy, run.options.nodes}][run.options.blocks] =
                run.results.usable_share();
    std::string svg = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img">)"
        R"(<style>{}</style><text class="title" x="{:.0f}" y="18">{}</text>)",
        kWidth, kHeight, kStyle, kLeft, record::escape_html(title));
    svg += axes(runs, scale) + limit_line(runs, scale);
    std::size_t number = 0;
    for (const auto& [key, points] : curves) {
        const char* const colour = kColours.at(number % kColours.size());
        std::string path;
        for (const auto& [blocks, share] : points)
            path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", scale.x(blocks),
                                scale.y(share));
        svg += fmt::format(R"(<path class="curve" stroke="{}" d="{}"/>)", colour, path);
        const double y = kBottom - 14.0 * static_cast<double>(curves.size() - number);
        svg += fmt::format(R"(<line class="curve" stroke="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" )"
                           R"(y2="{:.1f}"/><text x="{:.1f}" y="{:.1f}">{}, {} node{}</text>)",
                           colour, kRight + 10, kRight + 26, y, y, kRight + 31, y + 4,
                           to_string(key.first), key.second, key.second == 1 ? "" : "s");
        ++number;
    }
    return svg + "</svg>\n";
}

}  // namespace sluice::sim
