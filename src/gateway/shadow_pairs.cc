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

std::optional<std::chrono::nanoseconds> mean_gap(const RequestReport& report) {
    if (!report.ttft || report.completion_tokens < 2) return std::nullopt;
    return (report.duration - *report.ttft) /
           static_cast<std::int64_t>(report.completion_tokens - 1);
}

traffic::Answer answer_of(const RequestReport& report) {
    traffic::Answer answer{.ttft = report.ttft, .tbt = mean_gap(report)};
    if (answer.ttft) *answer.ttft -= report.queued;
    if (report.outcome != Outcome::kOk) {
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

bool is_invalid(const RequestReport& report) {
    if (report.outcome == Outcome::kInvalidOutput) return true;
    if (report.outcome != Outcome::kOk || !report.answer || report.answer->cut) return false;
    // What was cut by its length was on its way to be valid.
    if (report.answer->finish_reason == "length") return false;
    const auto broken = [](const CollectedToolCall& call) {
        return !traffic::is_json(call.arguments);
    };
    if (std::ranges::any_of(report.answer->tool_calls, broken)) return true;
    return report.kind == RequestKind::kJsonSchema && !traffic::is_json(report.answer->text);
}

}  // namespace sluice::gateway
