#include "app/load_report.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "record/percentiles.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using record::Percentiles;
using record::percentiles;
using record::to_object;
using trace::CallOutcome;

/// Kinds of errors that a report lists; the rest are counted by outcome alone.
constexpr std::size_t kErrorKinds = 8;

Outcome outcome_of(const trace::CallResult& result) {
    switch (result.outcome) {
        case CallOutcome::kOk: return Outcome::kOk;
        case CallOutcome::kRejected: return Outcome::kRejected;
        case CallOutcome::kTimeout:
            return result.ttft ? Outcome::kTimeoutDecode : Outcome::kTimeoutPrefill;
        case CallOutcome::kInvalidOutput: return Outcome::kInvalidOutput;
        case CallOutcome::kError: break;
    }
    return Outcome::kError;
}

std::int64_t unix_milliseconds() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

double milliseconds_of(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1e3;
}

std::string line(std::string_view name, const Percentiles& q) {
    const auto cell = [](const std::optional<double>& value) {
        return value ? fmt::format("{:.2f}", *value) : std::string("-");
    };
    return fmt::format("{:<12}{:>12}{:>12}{:>12}  ms\n", name, cell(q.p50), cell(q.p90),
                       cell(q.p99));
}

double per_second(std::uint64_t count, std::chrono::duration<double> elapsed) {
    return elapsed.count() > 0.0 ? static_cast<double>(count) / elapsed.count() : 0.0;
}

json::object counts(const std::map<std::string, std::uint64_t>& map) {
    json::object object;
    for (const auto& [name, count] : map) object[name] = count;
    return object;
}

}  // namespace

record::RequestRow load_row(const std::string& name, std::uint64_t number,
                            const trace::PlannedRequest& request, const trace::CallResult& result) {
    record::RequestRow row;
    row.rid = fmt::format("load-{:08}", number);
    // The row is written at its end, its time is that of its arrival.
    row.time_ms = unix_milliseconds() -
                  std::chrono::duration_cast<std::chrono::milliseconds>(result.duration).count();
    row.pool = name;
    row.kind = request.kind;
    row.prompt_tokens = result.prompt_tokens > 0 ? result.prompt_tokens : request.input_tokens;
    row.cached_tokens = result.cached_tokens;
    row.completion_tokens = result.completion_tokens;
    row.ttft = result.ttft;
    for (const auto gap : result.gaps) row.gaps.add(gap);
    row.duration = result.duration;
    row.outcome = outcome_of(result);
    row.error = result.error;
    return row;
}

LoadReport::LoadReport(std::string name, std::string model, LoadObjectives objectives)
    : name_(std::move(name)),
      model_(std::move(model)),
      objectives_(objectives),
      card_({.baseline = name_, .candidate = name_, .since = "the start of the test"}, {}),
      start_ms_(unix_milliseconds()) {}

record::Card LoadReport::card() const {
    record::Card card = card_.build();
    card.from_ms = start_ms_;
    card.to_ms = unix_milliseconds();
    return card;
}

bool LoadReport::meets_objectives(const record::RequestRow& row) const {
    if (objectives_.ttft && (!row.ttft || *row.ttft > *objectives_.ttft)) return false;
    const auto tbt = row.gaps.quantile(0.99);
    return !objectives_.tbt || !tbt || *tbt <= *objectives_.tbt;
}

void LoadReport::add(const record::RequestRow& row, const trace::CallResult& result) {
    ++ended_;
    ++outcomes_[std::string(to_string(row.outcome))];
    if (!result.error.empty() && (errors_.size() < kErrorKinds || errors_.contains(result.error)))
        ++errors_[result.error];
    card_.add(row, 0.0);
    if (row.outcome != Outcome::kOk) return;
    ++succeeded_;
    if (meets_objectives(row)) ++good_;
    prompt_tokens_ += row.prompt_tokens;
    cached_tokens_ += row.cached_tokens;
    completion_tokens_ += row.completion_tokens;
    if (row.ttft) ttft_.add(milliseconds_of(*row.ttft), 1);
    gaps_.merge(row.gaps);
}

std::string LoadReport::text(std::chrono::duration<double> elapsed) const {
    std::string text = fmt::format(
        "{} of {} requests succeeded in {:.1f} s: {:.2f} requests/s, {:.1f} tokens/s generated\n",
        succeeded_, ended_, elapsed.count(), per_second(succeeded_, elapsed),
        per_second(completion_tokens_, elapsed));
    text += fmt::format("prompt tokens {}, of them cached {}; generated {}\n", prompt_tokens_,
                        cached_tokens_, completion_tokens_);
    text += fmt::format("\n{:<12}{:>12}{:>12}{:>12}\n", "", "p50", "p90", "p99");
    text += line("TTFT", percentiles(ttft_)) + line("TBT", percentiles(gaps_));
    if (objectives_.ttft || objectives_.tbt) {
        text += fmt::format(
            "\ngoodput {:.2f} requests/s: {} of {} requests met the objectives ({:.1f} %)\n",
            per_second(good_, elapsed), good_, ended_,
            ended_ > 0 ? 100.0 * static_cast<double>(good_) / static_cast<double>(ended_) : 0.0);
    }
    if (succeeded_ < ended_) {
        text += "\n";
        for (const auto& [name, count] : outcomes_) text += fmt::format("{:>8} {}\n", count, name);
        for (const auto& [words, count] : errors_)
            text += fmt::format("{:>8} times: {}\n", count, words);
    }
    return text + "\n" + to_text(card());
}

std::string LoadReport::json(std::chrono::duration<double> elapsed) const {
    json::object object{{"test", "load"},
                        {"target", name_},
                        {"model", model_},
                        {"requests", ended_},
                        {"succeeded", succeeded_},
                        {"elapsed_s", elapsed.count()},
                        {"requests_per_s", per_second(succeeded_, elapsed)},
                        {"tokens_per_s", per_second(completion_tokens_, elapsed)},
                        {"prompt_tokens", prompt_tokens_},
                        {"cached_tokens", cached_tokens_},
                        {"completion_tokens", completion_tokens_},
                        {"ttft_ms", to_object(percentiles(ttft_))},
                        {"tbt_ms", to_object(percentiles(gaps_))},
                        {"outcomes", counts(outcomes_)},
                        {"errors", counts(errors_)}};
    if (objectives_.ttft) object["slo_ttft_ms"] = objectives_.ttft->count();
    if (objectives_.tbt) object["slo_tbt_ms"] = objectives_.tbt->count();
    object["goodput_rps"] = per_second(good_, elapsed);
    std::string text = json::serialize(object);
    // The card has a writer of its own.
    text.pop_back();
    return text + ",\"card\":" + to_json(card()) + "}";
}

}  // namespace sluice::app
