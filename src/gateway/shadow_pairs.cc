#include "gateway/shadow_pairs.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::gateway {
namespace {

std::string tokenizer_of(const RequestReport& report) {
    if (report.legs.empty() || !report.legs.back().versions) return {};
    return report.legs.back().versions->tokenizer_digest;
}

traffic::Answer answer_of(const RequestReport& report) {
    traffic::Answer answer{.ttft = report.ttft, .tbt = report.mean_gap};
    if (answer.ttft) *answer.ttft -= report.queued;
    // What came in the wrong shape came.
    if (report.outcome != Outcome::kOk && report.outcome != Outcome::kInvalidOutput) {
        answer.error =
            report.error_code.empty() ? std::string(to_string(report.outcome)) : report.error_code;
    }
    if (!report.answer) return answer;
    answer.text = report.answer->text;
    answer.reasoning = report.answer->reasoning;
    for (const CollectedToolCall& call : report.answer->tool_calls)
        answer.tool_calls.push_back({call.name, call.arguments});
    answer.finish_reason = report.answer->finish_reason;
    answer.output_ids = report.answer->output_ids;
    answer.cut = report.answer->cut;
    return answer;
}

}  // namespace

void ShadowPairs::add(const std::string& rid, bool fixed, const std::string& copy_rid,
                      traffic::Copy place) {
    Group& group = groups_[rid];
    group.fixed = fixed;
    group.copies.push_back({.rid = copy_rid, .place = std::move(place), .side = {}});
    answer_of_[copy_rid] = rid;
}

std::vector<ShadowPair> ShadowPairs::on_done(ShadowSide side) {
    const auto copied = answer_of_.find(side.report.rid);
    const bool is_copy = copied != answer_of_.end();
    const auto entry = groups_.find(is_copy ? copied->second : side.report.rid);
    if (is_copy) answer_of_.erase(copied);
    if (entry == groups_.end()) return {};
    Group& group = entry->second;
    if (is_copy) {
        const auto copy = std::ranges::find(group.copies, side.report.rid, &CopySide::rid);
        copy->side = std::move(side);
    } else {
        group.answer = std::move(side);
    }
    std::vector<ShadowPair> pairs;
    if (!group.answer) return pairs;
    for (CopySide& copy : group.copies) {
        if (!copy.side) continue;
        pairs.push_back({*group.answer, std::move(*copy.side), std::move(copy.place), group.fixed});
    }
    std::erase_if(group.copies, [](const CopySide& copy) { return copy.side.has_value(); });
    if (group.copies.empty()) groups_.erase(entry);
    return pairs;
}

std::vector<std::string> ShadowPairs::running(std::string_view pool) const {
    std::vector<std::string> rids;
    for (const auto& [unused, group] : groups_)
        for (const CopySide& copy : group.copies)
            if (!copy.side && (pool.empty() || copy.place.pool == pool)) rids.push_back(copy.rid);
    return rids;
}

bool tokens_comparable(const ShadowPair& pair) {
    const auto has_tokens = [](const ShadowSide& side) {
        return side.prepared && side.report.answer && side.report.outcome == Outcome::kOk;
    };
    const std::string tokenizer = tokenizer_of(pair.answer.report);
    return has_tokens(pair.answer) && has_tokens(pair.copy) && !tokenizer.empty() &&
           tokenizer == tokenizer_of(pair.copy.report);
}

traffic::Comparison compare(const ShadowPair& pair) {
    const bool tokens = tokens_comparable(pair);
    // Native engines answer a copy with the same seed, so with the same tokens if they are equal.
    return traffic::compare(answer_of(pair.answer.report), answer_of(pair.copy.report),
                            {.text = pair.fixed || tokens,
                             .tokens = tokens,
                             .json = pair.answer.report.kind == RequestKind::kJsonSchema});
}

}  // namespace sluice::gateway
