#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "record/card.h"
#include "record/card_numbers.h"

namespace sluice::record {
namespace {

using Cells = std::vector<std::string>;

const Cells kHeads = {"length",  "kind",   "pool",    "requests", "success", "TTFT p50",
                      "p90",     "p99",    "TBT p50", "p90",      "p99",     "cached",
                      "recomp.", "memory", "cost/ok", "differs",  "noise",   "verdict"};
constexpr std::size_t kTextColumns = 3;  // These are aligned to the left.

Cells cells(const Card& card, const CardRow& row) {
    return {std::string(to_string(row.bucket)),
            std::string(to_string(row.kind)),
            plain(row.pool),
            fmt::format("{}", row.requests),
            format_share(row.success_rate()),
            format_ms(row.ttft.p50),
            format_ms(row.ttft.p90),
            format_ms(row.ttft.p99),
            format_ms(row.tbt.p50),
            format_ms(row.tbt.p90),
            format_ms(row.tbt.p99),
            format_share(row.cached_share),
            format_share(row.recomputed_share),
            format_memory(row.device_memory_bytes),
            format_cost(row.cost_per_success()),
            format_share(row.differs_share),
            format_share(row.noise_floor),
            row.pool == card.candidate && card.candidate != card.baseline
                ? std::string(to_string(row.verdict))
                : ""};
}

// All cells but the dash are ASCII or come from names that are.
std::size_t width(const std::string& cell) {
    return static_cast<std::size_t>(std::ranges::count_if(
        cell, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string render(const std::vector<Cells>& table) {
    std::vector<std::size_t> widths(kHeads.size(), 0);
    for (const Cells& line : table) {
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], width(line[i]));
    }
    std::string text;
    for (const Cells& line : table) {
        std::string shown;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string pad(widths[i] - width(line[i]), ' ');
            const bool left = i < kTextColumns || i + 1 == line.size();
            shown += left ? line[i] + pad : pad + line[i];
            shown += "  ";
        }
        shown.erase(shown.find_last_not_of(' ') + 1);
        text += shown + "\n";
    }
    return text;
}

std::string failures(const Card& card) {
    std::string text;
    for (const CardRow& row : card.rows) {
        std::string parts;
        for (const auto& [outcome, count] : row.outcomes) {
            if (outcome == Outcome::kOk) continue;
            parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, to_string(outcome));
        }
        if (!parts.empty()) {
            text += fmt::format("  {} {} {}: {}\n", to_string(row.bucket), to_string(row.kind),
                                plain(row.pool), parts);
        }
    }
    return text.empty() ? text : "\nNot ok:\n" + text;
}

std::string reasons(const Card& card) {
    std::string text;
    for (const CardRow& row : card.rows) {
        for (const Judgement& judgement : row.judgements) {
            if (judgement.verdict == Verdict::kSame) continue;
            text += fmt::format("  {} {} {}: {} [{:.4g}, {:.4g}], noise {:.3g}\n",
                                to_string(row.bucket), to_string(row.kind), judgement.metric,
                                to_string(judgement.verdict), judgement.interval.low,
                                judgement.interval.high, judgement.margin);
        }
    }
    return text.empty()
               ? text
               : "\nWhy (shares: candidate - baseline; times: candidate / baseline; 99.9 % "
                 "intervals):\n" +
                     text;
}

std::string versions(const Card& card) {
    std::string text = "\nVersions:\n";
    for (const auto& [pool, list] : card.versions) {
        for (const CardVersion& version : list) {
            const VersionManifest& manifest = version.manifest;
            text += fmt::format(
                "  {} {} ({} requests): {} {} {}, {} {}, {}\n", plain(pool),
                plain(version.fingerprint), version.requests, plain(manifest.engine),
                plain(manifest.engine_version), plain(manifest.engine_commit).substr(0, 12),
                plain(manifest.model), plain(manifest.weights).substr(0, 12),
                manifest.hardware.empty() ? "hardware unknown" : plain(manifest.hardware));
        }
    }
    return text;
}

}  // namespace

std::string to_text(const Card& card) {
    std::string text =
        fmt::format("{} beside {}, {} to {}: {}\n\n", plain(card.candidate), plain(card.baseline),
                    format_time(card.from_ms), format_time(card.to_ms), to_string(card.verdict()));
    if (card.rows.empty()) return text + "No request reached either pool in this time.\n";
    std::vector<Cells> table{kHeads};
    for (const CardRow& row : card.rows) table.push_back(cells(card, row));
    text += render(table);
    text += failures(card);
    text += reasons(card);
    text += versions(card);
    return text;
}

}  // namespace sluice::record
