#include "engine/step_computer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/engine.h"
#include "tensor/float_environment.h"

namespace sluice::engine {

StepComputer::StepComputer(const Host& host, std::size_t vocabulary)
    : host_(host), scratch_(vocabulary) {
    batch_.rows.reserve(host_.options.step_tokens);
    batch_.block_tables.reserve(host_.options.running_max);
    known_.reserve(host_.options.running_max);
}

void StepComputer::compute(std::span<const StepPart> parts, Speculator& speculator,
                           FunctionRef<void(bool)> beside) {
    host_.team.run([](std::size_t) { tensor::use_exact_float_environment(); });
    const auto started = std::chrono::steady_clock::now();
    StepReport report;
    gather(parts, report);
    beside(true);
    host_.team.use(host_.threads.threads_for(batch_.rows.size()));
    host_.forward.run(batch_, host_.pool, [&](std::size_t row, std::span<float> logits) {
        const BatchRow& at = batch_.rows[row];
        on_logits(*parts[at.sequence].sequence, at.position, logits);
        ++report.sampled_tokens;
    });
    beside(false);
    settle(parts, speculator, report);
    computed_tokens_ += batch_.rows.size();
    report.duration = std::chrono::steady_clock::now() - started;
    if (report.prefill_tokens == 0) speculator.step_took(batch_.rows.size(), report.duration);
    host_.cost.learn(host_.scheduler.work(), report.duration);
    if (host_.options.on_step) host_.options.on_step(report);
}

void StepComputer::gather(std::span<const StepPart> parts, StepReport& report) {
    batch_.rows.clear();
    batch_.block_tables.clear();
    known_.clear();
    for (const StepPart& part : parts) {
        const Sequence& sequence = *part.sequence;
        const bool decode = sequence.pending() == 1 && sequence.output_tokens() > 0;
        (decode ? report.decode_tokens : report.prefill_tokens) += part.count;
        known_.push_back(sequence.tokens.size());
        add_rows(part);
    }
}

void StepComputer::add_rows(const StepPart& part) {
    Sequence& sequence = *part.sequence;
    sequence.draft_accepted = 0;
    sequence.draft_broken = false;
    // Guesses that the step has no room for are not checked.
    sequence.draft.resize(part.count - std::min(part.count, sequence.pending()));
    const auto index = static_cast<std::uint32_t>(batch_.block_tables.size());
    batch_.block_tables.emplace_back(sequence.blocks);
    for (std::size_t i = 0; i < part.count; ++i) {
        const std::size_t position = sequence.computed + i;
        const std::size_t next = position + 1;
        const std::size_t known = sequence.tokens.size();
        const bool scored = sequence.request.logprob_start >= 0 &&
                            next >= static_cast<std::size_t>(sequence.request.logprob_start) &&
                            next < sequence.prompt_tokens;
        batch_.rows.push_back({.token = position < known ? sequence.tokens[position]
                                                         : sequence.draft[position - known],
                               .position = static_cast<std::uint32_t>(position),
                               .sequence = index,
                               .wants_logits = scored || next >= known});
    }
}

void StepComputer::settle(std::span<const StepPart> parts, Speculator& speculator,
                          StepReport& report) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Sequence& sequence = *parts[i].sequence;
        const std::size_t before = sequence.computed;
        const std::size_t drafted =
            before + parts[i].count > known_[i] ? before + parts[i].count - known_[i] : 0;
        // Rows of tokens that were there, and of guesses that were right; the last pick is new.
        host_.scheduler.complete(sequence,
                                 before + parts[i].count - drafted + sequence.draft_accepted);
        speculator.remember(sequence, row, before, sequence.computed - before);
        speculator.learn(sequence, drafted);
        row += parts[i].count;
        sequence.progress.computed_tokens += parts[i].count;
        sequence.progress.drafted += drafted;
        sequence.progress.accepted += sequence.draft_accepted;
        report.drafted += drafted;
        report.accepted += sequence.draft_accepted;
        if (sequence.drafted_by == DraftSource::kMtp) {
            report.mtp_drafted += drafted;
            report.mtp_accepted += sequence.draft_accepted;
        }
        sequence.draft.clear();
    }
}

void StepComputer::on_logits(Sequence& sequence, std::size_t position, std::span<float> logits) {
    if (host_.options.faults.wrong_model)
        for (std::size_t i = 0; i < logits.size(); i += 2) logits[i] += 1.0F;
    const std::size_t next = position + 1;
    if (next < sequence.prompt_tokens && next < sequence.tokens.size()) {
        sequence.progress.input_logprobs.push_back(position_logprobs(
            logits, sequence.tokens[next], sequence.request.top_logprobs, scratch_));
        return;
    }
    // Behind the end, or behind a guess that was wrong, there is nothing to pick.
    if (sequence.progress.finish || sequence.draft_broken) return;
    const std::size_t guess = sequence.draft_accepted;
    sample(sequence, logits);
    if (sequence.progress.finish == Finish::kFailed || guess >= sequence.draft.size()) return;
    if (sequence.tokens.back() == sequence.draft[guess]) {
        ++sequence.draft_accepted;
    } else {
        sequence.draft_broken = true;
    }
}

// Picks the token after the last one.
void StepComputer::sample(Sequence& sequence, std::span<float> logits) {
    Output& progress = sequence.progress;
    const Request& request = sequence.request;
    if (request.return_logprobs) std::ranges::copy(logits, scratch_.unchanged.begin());
    auto token = sequence.sampler.pick(logits, sequence.tokens.size(), scratch_);
    if (host_.options.trust_guesses && sequence.draft_accepted < sequence.draft.size())
        token = sequence.draft[sequence.draft_accepted];
    if (!token) {
        progress.finish = Finish::kFailed;
        progress.message = token.error().message();
        return;
    }
    if (request.return_logprobs)
        progress.logprobs.push_back(
            position_logprobs(scratch_.unchanged, *token, request.top_logprobs, scratch_));
    ++sampled_tokens_;
    sequence.sampler.accept(*token);
    sequence.tokens.push_back(*token);
    progress.tokens.push_back(*token);
    if (sequence.sampler.is_stop(*token)) {
        progress.finish = Finish::kStop;
        progress.matched_stop = *token;
    } else if (sequence.output_tokens() >= request.sampling.max_new_tokens) {
        progress.finish = Finish::kLength;
    } else if (request.hand_over) {
        progress.finish = Finish::kHandedOver;
    }
}

}  // namespace sluice::engine
