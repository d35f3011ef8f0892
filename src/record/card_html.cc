#include <fmt/format.h>

#include <algorithm>

#include "record/card.h"
#include "record/card_numbers.h"
#include "record/card_style.h"
#include "record/html_text.h"
#include "record/svg_plot.h"

namespace sluice::record {
namespace {

constexpr const char* kFooter =
    "Times are measured at the gateway. A verdict compares 99.9 % intervals: order statistics for "
    "medians and tails of times, Newcombe's for shares. Better and worse mean beyond what the "
    "baseline differs from itself (the noise floor, measured with an A/A pair) and beyond 5 % for "
    "times, 0.5 points for shares. Same means that a factor of 2 or 10 points would have been "
    "seen; anything less certain is insufficient. Cost is the pool's price for the whole window, "
    "idle time and failures included, over its successes.";

bool alone(const Card& card) { return card.baseline == card.candidate; }

bool is_candidate(const Card& card, const CardRow& row) {
    return !alone(card) && row.pool == card.candidate;
}

const char* style_of(const Card& card, const CardRow& row) {
    return is_candidate(card, row) ? "candidate" : "baseline";
}

std::string badge(Verdict verdict, const char* size = "") {
    return fmt::format(R"(<span class="badge {} {}">{}</span>)", size, to_string(verdict),
                       to_string(verdict));
}

std::string name_of(const CardRow& row) {
    return fmt::format("{} {}", to_string(row.bucket), to_string(row.kind));
}

std::string header(const Card& card) {
    const std::string title =
        alone(card) ? fmt::format(R"(Pool <span class="baseline-name">{}</span>)",
                                  escape_html(card.baseline))
                    : fmt::format(R"(<span class="candidate-name">{}</span> beside )"
                                  R"(<span class="baseline-name">{}</span>)",
                                  escape_html(card.candidate), escape_html(card.baseline));
    return fmt::format(R"(<header><div><p class="soft">Sluice acceptance card</p><h1>{}</h1>)"
                       R"(<p class="soft">{} to {}</p></div><div>{}</div></header>)",
                       title, format_time(card.from_ms), format_time(card.to_ms),
                       alone(card) ? "" : badge(card.verdict(), "big"));
}

// ---- The table ------------------------------------------------------------------------------------

std::string failures(const CardRow& row) {
    std::string parts;
    for (const auto& [outcome, count] : row.outcomes) {
        if (outcome == Outcome::kOk) continue;
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, to_string(outcome));
    }
    return parts.empty() ? kNothing : parts;
}

std::string cell(const std::string& content) { return "<td>" + escape_html(content) + "</td>"; }

std::string triple(const Percentiles& of) {
    return cell(format_ms(of.p50)) + cell(format_ms(of.p90)) + cell(format_ms(of.p99));
}

std::string table_row(const Card& card, const CardRow& row, bool first) {
    std::string html = "<tr>";
    html += fmt::format(R"(<td class="left">{}</td>)", first ? escape_html(name_of(row)) : "");
    html += fmt::format(R"(<td class="left side {}-name">{}</td>)", style_of(card, row),
                        escape_html(row.pool));
    html += fmt::format(R"(<td class="left">{}</td>)",
                        is_candidate(card, row) ? badge(row.verdict) : "");
    html += cell(fmt::format("{}", row.requests)) + cell(format_share(row.success_rate()));
    html += triple(row.ttft) + triple(row.tbt);
    html += cell(format_share(row.cached_share)) + cell(format_share(row.recomputed_share));
    html +=
        cell(format_memory(row.device_memory_bytes)) + cell(format_cost(row.cost_per_success()));
    html += cell(format_share(row.differs_share)) + cell(format_share(row.noise_floor));
    html += fmt::format(R"(<td class="left">{}</td></tr>)", escape_html(failures(row)));
    return html;
}

std::string table(const Card& card) {
    std::string html =
        R"(<div class="sheet"><table><thead><tr><th class="left">Requests</th>)"
        R"(<th class="left">Pool</th><th class="left">Verdict</th><th>Count</th><th>Success</th>)"
        "<th>TTFT p50</th><th>p90</th><th>p99</th><th>TBT p50</th><th>p90</th><th>p99</th>"
        "<th>Cached</th><th>Recomputed</th><th>Memory</th><th>Cost / success</th>"
        R"(<th>Differs</th><th>Noise</th><th class="left">Not ok</th></tr></thead>)";
    std::string last;
    for (const CardRow& row : card.rows) {
        const bool first = name_of(row) != last;
        if (first)
            html += last.empty() ? R"(<tbody class="pair">)" : R"(</tbody><tbody class="pair">)";
        html += table_row(card, row, first);
        last = name_of(row);
    }
    return html + "</tbody></table></div>";
}

std::string reasons(const Card& card) {
    std::string items;
    for (const CardRow& row : card.rows) {
        for (const Judgement& judgement : row.judgements) {
            if (judgement.verdict == Verdict::kSame) continue;
            const bool share = judgement.metric == "success" || judgement.metric == "differs";
            items += fmt::format(
                R"(<li>{}: <b class="{}">{} {}</b> <span class="soft">{} between {:.3g} and {:.3g}, )"
                R"(noise up to {:.3g}</span></li>)",
                escape_html(name_of(row)), to_string(judgement.verdict),
                escape_html(judgement.metric), to_string(judgement.verdict),
                share ? "difference" : "ratio", judgement.interval.low, judgement.interval.high,
                share ? judgement.margin : 1.0 + judgement.margin);
        }
    }
    return items.empty() ? items : "<h2>Why</h2><ul>" + items + "</ul>";
}

// ---- Plots ----------------------------------------------------------------------------------------

template <class Quantile>
std::vector<Curve::Point> points(const Quantile& quantile) {
    constexpr int kPoints = 200;
    std::vector<Curve::Point> points;
    for (int i = 1; i <= kPoints; ++i) {
        const double share = static_cast<double>(i) / kPoints;
        if (const std::optional<double> ms = quantile(share)) points.push_back({*ms, share});
    }
    return points;
}

std::vector<Curve::Point> ttft_points(const CardRow& row) {
    return points([&](double share) { return row.ttft_samples.quantile(share); });
}

std::vector<Curve::Point> tbt_points(const CardRow& row) {
    return points([&](double share) -> std::optional<double> {
        const auto value = row.gaps.quantile(share);
        if (!value) return std::nullopt;
        return static_cast<double>(value->count()) / 1000.0;
    });
}

std::string framed(const std::string& svg) {
    return svg.empty() ? svg : R"(<div class="plot">)" + svg + "</div>";
}

std::string distributions(const Card& card) {
    std::string html;
    for (auto row = card.rows.begin(); row != card.rows.end();) {
        const std::string name = name_of(*row);
        std::vector<Curve> ttft;
        std::vector<Curve> tbt;
        for (; row != card.rows.end() && name_of(*row) == name; ++row) {
            ttft.push_back({style_of(card, *row), row->pool, ttft_points(*row)});
            tbt.push_back({style_of(card, *row), row->pool, tbt_points(*row)});
        }
        html += framed(plot_distributions("Time to first token, " + name, ttft));
        html += framed(plot_distributions("Time between tokens, " + name, tbt));
    }
    return html;
}

std::string successes(const Card& card) {
    std::vector<Estimate> estimates;
    for (const CardRow& row : card.rows) {
        if (!row.success_rate()) continue;
        estimates.push_back({.style = style_of(card, row),
                             .label = name_of(row) + " " + row.pool,
                             .value = format_share(row.success_rate()),
                             .share = *row.success_rate(),
                             .interval = wilson_interval(static_cast<double>(row.successes()),
                                                         static_cast<double>(row.requests))});
    }
    return framed(plot_shares("Success, with 99.9 % intervals", estimates));
}

// ---- Versions -------------------------------------------------------------------------------------

std::string versions(const Card& card) {
    std::vector<const CardVersion*> columns;
    std::string heads;
    std::vector<std::string> pools{card.baseline};
    if (!alone(card)) pools.push_back(card.candidate);
    for (const std::string& pool : pools) {
        const auto found = card.versions.find(pool);
        if (found == card.versions.end()) continue;
        for (const CardVersion& version : found->second) {
            columns.push_back(&version);
            heads +=
                fmt::format(R"(<th class="left">{}<br>{}<br>{} requests</th>)", escape_html(pool),
                            escape_html(version.fingerprint), version.requests);
        }
    }
    if (columns.empty()) return {};
    std::string html = R"(<h2>Versions and hardware</h2><div class="sheet"><table><thead><tr>)"
                       R"(<th class="left"></th>)" +
                       heads + "</tr></thead><tbody>";
    const VersionManifest names;
    visit_fields(names, [&](std::string_view field, const std::string&) {
        std::vector<std::string> values;
        for (const CardVersion* const column : columns) {
            visit_fields(column->manifest, [&](std::string_view name, const std::string& value) {
                if (name == field) values.push_back(value);
            });
        }
        if (std::ranges::all_of(values, &std::string::empty)) return;
        const bool equal = std::ranges::count(values, values.front()) == std::ssize(values);
        html += fmt::format(R"(<tr><td class="left soft">{}</td>)", escape_html(field));
        for (const std::string& value : values) {
            html += fmt::format(R"(<td class="left wrap {}">{}</td>)", equal ? "" : "differs",
                                value.empty() ? kNothing : escape_html(value));
        }
        html += "</tr>";
    });
    return html + "</tbody></table></div>";
}

}  // namespace

std::string to_html(const Card& card) {
    std::string html = R"(<!doctype html><html lang="en"><head><meta charset="utf-8">)"
                       R"(<meta name="viewport" content="width=device-width, initial-scale=1">)";
    html += fmt::format("<title>{} beside {} · Sluice card</title><style>",
                        escape_html(card.candidate), escape_html(card.baseline));
    html += kCardStyle;
    html += "</style></head><body><main>" + header(card);
    if (card.rows.empty()) {
        html += R"(<p>No request reached either pool in this time.</p>)";
    } else {
        html += table(card) + reasons(card);
        html += R"(<h2>Distributions</h2><div class="plots">)" + successes(card) +
                distributions(card) + "</div>";
        html += versions(card);
    }
    return html + "<footer>" + kFooter + "</footer></main></body></html>\n";
}

}  // namespace sluice::record
