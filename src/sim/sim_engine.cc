#include "sim/sim_engine.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/assert.h"

namespace sluice::sim {
namespace {

using dispatch::LegFault;

/// The least that a step computes of prompts, whatever it costs, as in the native engine.
constexpr std::uint32_t kPrefillLeast = 16;
/// How long a process takes to come back that its input brought down.
constexpr std::chrono::seconds kPoisonDowntime{10};

std::optional<engine::StepForecast> forecast_of(const EngineParameters& p) {
    if (p.forecast_row_us <= 0.0) return std::nullopt;
    constexpr double kLeast = 1e-3;  // No cost is nothing, or nothing would be learnt of it.
    engine::StepForecast::Terms guesses{p.forecast_step_us, p.forecast_row_us,
                                        p.forecast_attended_us, p.forecast_logits_us};
    for (double& guess : guesses) guess = std::max(guess * 1e3, kLeast);
    return engine::StepForecast(guesses);
}

}  // namespace

SimEngine::SimEngine(EventQueue& queue, EngineParameters parameters,
                     std::unique_ptr<CacheTiers> tiers)
    : queue_(queue),
      parameters_(parameters),
      cache_(parameters.blocks),
      tiers_(std::move(tiers)),
      forecast_(forecast_of(parameters)) {}

SimEngine::~SimEngine() {
    queue_.cancel(step_event_);
    queue_.cancel(restart_event_);
    for (const auto& [id, hold] : holds_) queue_.cancel(hold.end);
}

// ---- Jobs -----------------------------------------------------------------------------------------

void SimEngine::submit(Job job, JobObserver& observer) {
    const auto sequence = std::make_shared<Sequence>();
    sequence->observer = &observer;
    sequence->serial = ++serial_;
    sequence->encode_left = job.image_tokens;
    sequence->tokens = job.phase == Job::Phase::kEncode ? 0 : job.prompt_tokens + job.answered;
    sequence->job = std::move(job);
    const bool added = jobs_.emplace(sequence->job.id, sequence).second;
    SLUICE_ASSERT(added);
    queue_.after(from_microseconds(parameters_.request_us), [this, sequence] { arrive(sequence); });
}

void SimEngine::arrive(const SequencePtr& sequence) {
    if (sequence->observer == nullptr) return;
    const Job& job = sequence->job;
    const std::size_t chain = job.chain ? job.chain->size() : 0;
    if (!up_) return fault_later(sequence, LegFault::kUnavailable);
    if (other_model_) return fault_later(sequence, LegFault::kMisconfigured);
    if (chain + answer_blocks(job.answer_tokens) > parameters_.blocks)
        return fault_later(sequence, LegFault::kRefused);
    if (waiting_.size() >= parameters_.waiting_max) return fault_later(sequence, LegFault::kFull);
    enqueue(sequence);
    kick();
}

// By arrival, so that a preempted sequence comes back to its place.
void SimEngine::enqueue(const SequencePtr& sequence) {
    auto place = waiting_.end();
    while (place != waiting_.begin() && (*std::prev(place))->serial > sequence->serial) --place;
    waiting_.insert(place, sequence);
}

void SimEngine::cancel(JobId id) {
    const auto at = jobs_.find(id);
    if (at == jobs_.end()) return;
    const SequencePtr sequence = at->second;
    jobs_.erase(at);
    sequence->observer = nullptr;
    release_hold(id);
    std::erase(running_, sequence);
    std::erase(waiting_, sequence);
    free_blocks(*sequence);
}

void SimEngine::fault_later(const SequencePtr& sequence, LegFault fault) {
    queue_.after(Duration::zero(), [this, sequence, fault] {
        JobObserver* const observer = std::exchange(sequence->observer, nullptr);
        if (observer == nullptr) return;
        jobs_.erase(sequence->job.id);
        observer->on_fault(fault);
    });
}

// ---- Planning a step ------------------------------------------------------------------------------

void SimEngine::admit() {
    while (!waiting_.empty() && running_.size() < parameters_.running_max) {
        const SequencePtr next = waiting_.front();
        if (!give_blocks(next)) return;
        waiting_.pop_front();
        running_.push_back(next);
        if (next->job.brings_kv && next->computed + 1 < next->tokens) pull(next);
    }
}

void SimEngine::kick() {
    if (!up_ || stepping_) return;
    admit();
    parts_.clear();
    load_ = {};
    work_ = {};
    plan_decodes();
    plan_encodes();
    plan_prefills();
    if (parts_.empty()) return;
    stepping_ = true;
    last_step_ = queue_.now();
    step_took_ = from_microseconds(duration_us(load_));
    step_event_ = queue_.after(step_took_, [this] { end_step(); });
}

std::uint32_t SimEngine::room_in_step() const {
    const std::uint64_t used = load_.prefill_rows + load_.decode_rows + load_.encode_rows;
    return used < parameters_.step_tokens
               ? parameters_.step_tokens - static_cast<std::uint32_t>(used)
               : 0;
}

double SimEngine::slowness() const {
    const auto busy = std::ranges::count_if(neighbours_, &SimEngine::computing);
    const double own = queue_.now() < slow_until_ ? slow_factor_ : 1.0;
    return own * (1.0 + parameters_.neighbour_share * static_cast<double>(busy));
}

double SimEngine::duration_us(const StepLoad& load) const {
    return step_microseconds(parameters_, load) * slowness();
}

void SimEngine::take(const SequencePtr& sequence, std::uint32_t rows) {
    if (rows == 0) return;
    parts_.push_back({.sequence = sequence, .rows = rows, .encode_rows = 0});
    load_.add_prefill(sequence->computed, rows, parameters_.near_tokens);
    work_.add_rows(sequence->computed, rows);
    if (sequence->pending() == rows) ++work_.logits;
}

void SimEngine::preempt_last() {
    const SequencePtr last = running_.back();
    running_.pop_back();
    free_blocks(*last);
    // What it brought is gone, too.
    last->job.brings_kv = false;
    ++totals_.preemptions;
    std::erase_if(parts_, [&](const Part& part) { return part.sequence == last; });
    enqueue(last);
}

bool SimEngine::reserve_answer(const SequencePtr& sequence) {
    const std::uint32_t named = sequence->sealed;
    const auto chain = static_cast<std::uint32_t>(sequence->job.chain->size());
    const std::uint32_t answer = sequence->computed + 1 - sequence->job.prompt_tokens;
    while (sequence->unnamed + named < chain + answer_blocks(answer)) {
        if (cache_.allocate(1)) {
            ++sequence->unnamed;
            continue;
        }
        const bool itself = running_.back() == sequence;
        preempt_last();
        if (itself) return false;
    }
    return true;
}

void SimEngine::plan_decodes() {
    // By index: whoever needs room may preempt those behind it.
    for (std::size_t i = 0; i < running_.size(); ++i) {
        const SequencePtr sequence = running_[i];
        if (!sequence->decodes() || room_in_step() == 0 || !reserve_answer(sequence)) continue;
        parts_.push_back({.sequence = sequence, .rows = 1, .encode_rows = 0});
        load_.add_decode(1, sequence->tokens, parameters_.decode_near);
        work_.add_rows(sequence->computed, 1);
        ++work_.logits;
    }
}

void SimEngine::plan_encodes() {
    for (const SequencePtr& sequence : running_) {
        const std::uint32_t rows = std::min(sequence->encode_left, room_in_step());
        if (rows == 0) continue;
        parts_.push_back({.sequence = sequence, .rows = 0, .encode_rows = rows});
        load_.encode_rows += rows;
    }
}

std::uint32_t SimEngine::rows_in_time(const Sequence& sequence, std::uint32_t most) const {
    const auto time = from_microseconds(parameters_.step_time_us);
    if (forecast_)
        return static_cast<std::uint32_t>(
            forecast_->rows_within(time, work_, sequence.computed, most));
    std::uint32_t fits = 0;
    std::uint32_t too_many = most + 1;
    while (fits + 1 < too_many) {
        const std::uint32_t count = fits + (too_many - fits) / 2;
        StepLoad with = load_;
        with.add_prefill(sequence.computed, count, parameters_.near_tokens);
        (duration_us(with) <= parameters_.step_time_us ? fits : too_many) = count;
    }
    return fits;
}

std::uint32_t SimEngine::prefill_budget(const SequencePtr& oldest) const {
    const std::uint32_t room = room_in_step();
    if (parts_.empty()) return room;
    return std::min(room, std::max(rows_in_time(*oldest, room), kPrefillLeast));
}

void SimEngine::plan_prefills() {
    std::vector<SequencePtr> prefills;
    for (const SequencePtr& sequence : running_) {
        const bool waits = sequence->loading || sequence->encode_left > 0;
        if (!waits && sequence->pending() > 0 && !sequence->decodes()) prefills.push_back(sequence);
    }
    if (prefills.empty()) return;
    const SequencePtr oldest = prefills.front();
    const bool timed = !parts_.empty();
    const bool shortest = parameters_.order == PrefillOrder::kShortest;
    if (shortest) {
        std::ranges::sort(prefills, {}, [](const SequencePtr& sequence) {
            return std::pair(sequence->pending(), sequence->serial);
        });
    }
    std::uint32_t budget = prefill_budget(oldest);
    std::uint32_t kept = shortest ? std::max(budget / 4, std::min(budget, kPrefillLeast)) : 0;
    for (const SequencePtr& sequence : prefills) {
        if (budget == 0) return;
        if (sequence == oldest) kept = 0;
        std::uint32_t most = std::min(budget - kept, sequence->pending());
        if (timed) {
            const std::uint32_t least = sequence == oldest ? std::min(most, kPrefillLeast) : 0;
            most = std::max(least, rows_in_time(*sequence, most));
        }
        take(sequence, most);
        budget -= most;
    }
}

// ---- The end of a step ----------------------------------------------------------------------------

void SimEngine::end_step() {
    if (queue_.now() < stalled_until_) {
        step_event_ = queue_.at(stalled_until_, [this] { end_step(); });
        return;
    }
    stepping_ = false;
    last_step_ = queue_.now();
    ++totals_.steps;
    totals_.computing += step_took_;
    if (forecast_) forecast_->learn(work_, step_took_);
    const std::vector<Part> parts = std::exchange(parts_, {});
    const bool poisoned = std::ranges::any_of(parts, [](const Part& part) {
        return part.sequence->observer != nullptr && part.sequence->job.poison;
    });
    if (poisoned) return crash(kPoisonDowntime);
    std::vector<std::pair<SequencePtr, Notice>> notices;
    for (const Part& part : parts)
        if (part.sequence->observer != nullptr) finish_part(part, notices);
    for (const auto& [sequence, notice] : notices) give_notice(sequence, notice);
    kick();
    tell_blocks();
}

void SimEngine::tell_blocks() {
    if (on_blocks_ && cache_.has_events()) on_blocks_();
}

void SimEngine::finish_part(const Part& part,
                            std::vector<std::pair<SequencePtr, Notice>>& notices) {
    const SequencePtr& sequence = part.sequence;
    const Job& job = sequence->job;
    const auto leave = [&](Notice notice) {
        std::erase(running_, sequence);
        notices.emplace_back(sequence, notice);
    };
    totals_.encode_tokens += part.encode_rows;
    sequence->encode_left -= part.encode_rows;
    if (job.phase == Job::Phase::kEncode) {
        if (sequence->encode_left == 0) leave(Notice::kEnd);
        return;
    }
    if (part.rows == 0) return;
    (sequence->decodes() ? totals_.decode_tokens : totals_.prefill_tokens) += part.rows;
    sequence->computed += part.rows;
    seal_to(*sequence, sequence->computed);
    if (sequence->computed < sequence->tokens) return;
    ++sequence->tokens;
    notices.emplace_back(sequence, Notice::kToken);
    if (sequence->tokens - job.prompt_tokens >= job.answer_tokens) {
        free_blocks(*sequence);
        leave(Notice::kEnd);
    } else if (job.phase == Job::Phase::kPrefill) {
        hold(sequence);
        leave(Notice::kHandover);
    }
}

void SimEngine::give_notice(const SequencePtr& sequence, Notice notice) {
    JobObserver* const observer = sequence->observer;
    if (observer == nullptr) return;
    if (notice == Notice::kToken) return observer->on_token();
    if (notice == Notice::kPulled) return observer->on_pulled();
    sequence->observer = nullptr;
    jobs_.erase(sequence->job.id);
    if (notice == Notice::kEnd) return observer->on_end();
    observer->on_handover();
}

// ---- Failures -------------------------------------------------------------------------------------

void SimEngine::crash(Duration downtime) {
    up_ = false;
    stepping_ = false;
    other_model_ = false;
    ++epoch_;
    ++totals_.crashes;
    queue_.cancel(step_event_);
    parts_.clear();
    std::vector<SequencePtr> lost;
    for (const auto& [id, sequence] : jobs_) lost.push_back(sequence);
    std::ranges::sort(lost, {}, &Sequence::serial);
    for (const auto& [id, hold] : holds_) queue_.cancel(hold.end);
    holds_.clear();
    running_.clear();
    waiting_.clear();
    cache_.clear();
    if (tiers_) tiers_->restart();
    forecast_ = forecast_of(parameters_);
    for (const SequencePtr& sequence : lost) {
        queue_.cancel(sequence->load);
        sequence->sealed = 0;
        sequence->unnamed = 0;
        sequence->loading = false;
        fault_later(sequence, LegFault::kUnavailable);
    }
    queue_.cancel(restart_event_);
    restart_event_ = queue_.after(downtime, [this] { up_ = true; });
    tell_blocks();
}

void SimEngine::stall(Duration duration) {
    stalled_until_ = std::max(stalled_until_, queue_.now() + duration);
}

void SimEngine::slow(double factor, Duration duration) {
    slow_factor_ = factor;
    slow_until_ = queue_.now() + duration;
}

std::uint64_t SimEngine::pending_prefill() const {
    std::uint64_t pending = 0;
    for (const auto& sequences : {std::vector(waiting_.begin(), waiting_.end()), running_})
        for (const SequencePtr& sequence : sequences)
            if (!sequence->decodes() && !sequence->loading) pending += sequence->pending();
    return pending;
}

Time SimEngine::last_progress() const {
    return running_.empty() && waiting_.empty() ? queue_.now() : last_step_;
}

}  // namespace sluice::sim
