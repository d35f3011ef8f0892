#include "record/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "record/card_numbers.h"
#include "record/html_text.h"

namespace sluice::record {
namespace {

constexpr double kWidth = 520.0;

/// Places values of one range on one stretch of pixels.
struct Scale {
    double from;
    double to;
    double first_pixel;
    double last_pixel;
    [[nodiscard]] double operator()(double value) const {
        return first_pixel + (value - from) / (to - from) * (last_pixel - first_pixel);
    }
};

std::string open_svg(const std::string& title, double height) {
    return fmt::format(
        R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}"><title>{}</title>)", kWidth,
        height, escape_html(title), escape_html(title));
}

std::string line(const char* style, double x1, double y1, double x2, double y2) {
    return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
                       style, x1, y1, x2, y2);
}

std::string text(double x, double y, const char* anchor, const std::string& content,
                 const std::string& style = "axis") {
    return fmt::format(R"(<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)",
                       style, x, y, anchor, escape_html(content));
}

std::string tick_label(double ms) {
    if (ms < 1.0) return fmt::format("{:g} µs", ms * 1000.0);
    if (ms < 1000.0) return fmt::format("{:g} ms", ms);
    return fmt::format("{:g} s", ms / 1000.0);
}

// Round times between two bounds: decades, and 2 and 5 between them where there is room.
std::vector<double> time_ticks(double low, double high) {
    std::vector<double> ticks;
    const bool dense = std::log10(high / low) < 2.5;
    for (double decade = std::pow(10.0, std::floor(std::log10(low))); decade <= high;
         decade *= 10.0) {
        for (const double step : {1.0, 2.0, 5.0}) {
            const double tick = decade * step;
            if ((step == 1.0 || dense) && tick >= low * 0.999 && tick <= high * 1.001)
                ticks.push_back(tick);
        }
    }
    return ticks;
}

Interval time_range(const std::vector<Curve>& curves) {
    Interval range{.low = std::numeric_limits<double>::max(), .high = 0.0};
    for (const Curve& curve : curves) {
        for (const Curve::Point& point : curve.points) {
            range.low = std::min(range.low, std::max(point.ms, 0.001));
            range.high = std::max(range.high, std::max(point.ms, 0.001));
        }
    }
    // Some air on both sides, also around a single value.
    range.low /= 1.15;
    range.high *= 1.15;
    if (range.high / range.low < 2.0) {
        range.low /= 1.4;
        range.high *= 1.4;
    }
    return range;
}

std::string path(const Curve& curve, const Scale& x, const Scale& y) {
    std::string steps = fmt::format("M{:.1f} {:.1f}",
                                    x(std::log10(std::max(curve.points.front().ms, 0.001))), y(0));
    for (const Curve::Point& point : curve.points) {
        steps +=
            fmt::format("L{:.1f} {:.1f}", x(std::log10(std::max(point.ms, 0.001))), y(point.share));
    }
    return fmt::format(R"(<path class="curve {}" d="{}"/>)", curve.style, steps);
}

std::string legend(const std::vector<Curve>& curves, double x, double y) {
    std::string svg;
    for (const Curve& curve : curves) {
        if (curve.points.empty()) continue;
        svg += fmt::format(
            R"(<line class="curve {}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
            curve.style, x, y - 4, x + 18, y - 4);
        svg += text(x + 24, y, "start", curve.label, "legend");
        y += 16;
    }
    return svg;
}

}  // namespace

std::string plot_distributions(const std::string& title, const std::vector<Curve>& curves) {
    constexpr double kHeight = 230.0;
    if (std::ranges::all_of(curves, [](const Curve& curve) { return curve.points.empty(); }))
        return {};
    const Interval range = time_range(curves);
    const Scale x{std::log10(range.low), std::log10(range.high), 48.0, kWidth - 14.0};
    const Scale y{0.0, 1.0, kHeight - 30.0, 34.0};
    std::string svg = open_svg(title, kHeight);
    svg += text(48, 18, "start", title, "title");
    for (const double share : {0.0, 0.5, 0.9, 0.99}) {
        svg += line("grid", x.first_pixel, y(share), x.last_pixel, y(share));
        // 99 % would touch 90 %'s neighbour at this height; it has its line only.
        if (share != 0.99)
            svg += text(42, y(share) + 4, "end", fmt::format("{:.0f} %", share * 100));
    }
    for (const double tick : time_ticks(range.low, range.high)) {
        svg += line("grid", x(std::log10(tick)), y.first_pixel, x(std::log10(tick)), y.last_pixel);
        svg += text(x(std::log10(tick)), kHeight - 12, "middle", tick_label(tick));
    }
    for (const Curve& curve : curves) {
        if (!curve.points.empty()) svg += path(curve, x, y);
    }
    return svg + legend(curves, x.last_pixel - 150, y(0.36)) + "</svg>";
}

std::string plot_shares(const std::string& title, const std::vector<Estimate>& estimates) {
    constexpr double kLine = 24.0;
    constexpr double kTop = 34.0;
    if (estimates.empty()) return {};
    double low = 1.0;
    for (const Estimate& estimate : estimates) low = std::min(low, estimate.interval.low);
    low = std::max(0.0, std::floor(low * 20.0 - 0.2) / 20.0);
    const double bottom = kTop + kLine * static_cast<double>(estimates.size());
    const Scale x{low, 1.0, 190.0, kWidth - 70.0};
    std::string svg = open_svg(title, bottom + 24);
    svg += text(12, 18, "start", title, "title");
    for (int i = 0; i <= 4; ++i) {
        const double share = low + (1.0 - low) * i / 4.0;
        svg += line("grid", x(share), kTop - 4, x(share), bottom);
        svg += text(x(share), bottom + 15, "middle", fmt::format("{:.4g} %", share * 100.0));
    }
    double y = kTop + 10.0;
    for (const Estimate& estimate : estimates) {
        svg += text(180, y + 4, "end", estimate.label, "legend");
        svg += fmt::format(
            R"(<line class="whisker {0}" x1="{1:.1f}" y1="{2:.1f}" x2="{3:.1f}" y2="{2:.1f}"/>)",
            estimate.style, x(std::max(low, estimate.interval.low)), y, x(estimate.interval.high));
        svg += fmt::format(R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="4.5"/>)",
                           estimate.style, x(std::max(low, estimate.share)), y);
        svg += text(kWidth - 8, y + 4, "end", estimate.value, "legend");
        y += kLine;
    }
    return svg + "</svg>";
}

}  // namespace sluice::record
