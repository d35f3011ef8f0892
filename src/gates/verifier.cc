#include "gates/verifier.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "trace/prompt_maker.h"

namespace sluice::gates {
namespace {

constexpr std::chrono::milliseconds kSlice{20};
constexpr std::size_t kLongAnswerTokens = 32;
constexpr std::size_t kLongPrompts = 4;  ///< Of each length.

std::vector<BaselinePrompt> long_prompts(std::size_t words) {
    std::vector<BaselinePrompt> prompts;
    for (std::size_t i = 0; i < kLongPrompts; ++i) {
        prompts.push_back(
            {.id = fmt::format("\"long-{}-{}\"", words, i),
             .messages = fmt::format(R"([{{"role":"user","content":"{}"}}])",
                                     trace::PromptMaker::words(words * 31 + i, words)),
             .prompt = {},
             .sampling =
                 fmt::format(R"({{"max_new_tokens":{},"seed":{}}})", kLongAnswerTokens, 7 + i)});
    }
    return prompts;
}

GateItem failed_round(const std::string& subject, const Error& error) {
    return {.subject = subject,
            .item = "answers",
            .required = "all",
            .found = error.to_string(),
            .verdict = Verdict::kFail};
}

}  // namespace

/// The requests of one round, so many at a time.
class Verifier::Round {
public:
    Round(Verifier& owner, const std::vector<BaselinePrompt>& prompts)
        : owner_(owner), prompts_(prompts) {}

    /// Starts the next request, if there is one.
    void start_next() {
        if (next_ == prompts_.size()) return;
        const std::size_t index = next_++;
        const BaselinePrompt& prompt = prompts_[index];
        open_.emplace(index, trace::StreamCall::start(owner_.client_, owner_.target_,
                                                      request_body(prompt, owner_.target_.model),
                                                      {.path = std::string(request_path(prompt)),
                                                       .keep_text = true,
                                                       .headers = owner_.options_.headers},
                                                      std::chrono::steady_clock::now(),
                                                      [this, index](trace::CallResult result) {
                                                          on_end(index, std::move(result));
                                                      }));
    }

    [[nodiscard]] bool done() const { return open_.empty() && next_ == prompts_.size(); }
    [[nodiscard]] std::size_t answered() const { return outputs_.size(); }

    Result<std::vector<BaselineOutput>> take() {
        if (error_) return std::unexpected(*error_);
        std::vector<BaselineOutput> outputs;
        for (auto& [index, output] : outputs_) outputs.push_back(std::move(output));
        return outputs;
    }

private:
    void on_end(std::size_t index, trace::CallResult result) {
        open_.erase(index);
        const BaselinePrompt& prompt = prompts_[index];
        if (result.outcome != trace::CallOutcome::kOk && !error_)
            error_ = Error(ErrorCode::kUnavailable, result.error, "row " + prompt.id);
        outputs_.emplace(index, BaselineOutput{.id = prompt.id,
                                               .text = std::move(result.text),
                                               .output_ids = {},
                                               .finish_reason = std::move(result.finish_reason)});
        start_next();
    }

    Verifier& owner_;
    const std::vector<BaselinePrompt>& prompts_;
    std::size_t next_ = 0;
    std::map<std::size_t, std::unique_ptr<trace::StreamCall>> open_;
    std::map<std::size_t, BaselineOutput> outputs_;
    std::optional<Error> error_;
};

Verifier::Verifier(net::EventLoop& loop, net::HttpClient& client, trace::LoadTarget target,
                   VerifyOptions options, VerifyProgress progress)
    : loop_(loop),
      client_(client),
      target_(std::move(target)),
      options_(std::move(options)),
      progress_(std::move(progress)) {}

Result<std::vector<BaselineOutput>> Verifier::ask(const std::vector<BaselinePrompt>& prompts,
                                                  std::size_t at_a_time, const std::string& round) {
    Round running(*this, prompts);
    for (std::size_t i = 0; i < at_a_time; ++i) running.start_next();
    while (!running.done()) {
        loop_.run_for(kSlice);
        if (progress_) progress_(round, running.answered(), prompts.size());
    }
    return running.take();
}

void Verifier::add_round(GateReport& report, const Baseline& baseline, const std::string& subject,
                         std::size_t at_a_time) {
    std::vector<BaselinePrompt> prompts;
    for (const BaselineRow& row : baseline.rows) prompts.push_back(row.prompt);
    const auto outputs = ask(prompts, at_a_time, subject);
    if (!outputs) return report.items.push_back(failed_round(subject, outputs.error()));
    for (GateItem& item : compare(baseline, *outputs, subject, options_.min_equal))
        report.items.push_back(std::move(item));
}

void Verifier::add_long(GateReport& report) {
    for (const std::size_t words : options_.long_words) {
        const std::string subject = fmt::format("long, {} words", words);
        const auto prompts = long_prompts(words);
        const auto alone = ask(prompts, 1, subject);
        if (!alone) {
            report.items.push_back(failed_round(subject, alone.error()));
            continue;
        }
        Baseline own;
        for (std::size_t i = 0; i < prompts.size(); ++i)
            own.rows.push_back({.prompt = prompts[i], .output = (*alone)[i]});
        add_round(report, own, subject + ", together", prompts.size());
    }
}

void Verifier::interrupt(const std::vector<BaselinePrompt>& prompts) {
    for (const BaselinePrompt& prompt : prompts) {
        bool over = false;
        auto call = trace::StreamCall::start(client_, target_, request_body(prompt, target_.model),
                                             {.path = std::string(request_path(prompt)),
                                              .headers = options_.headers,
                                              .on_token = [&over] { over = true; }},
                                             std::chrono::steady_clock::now(),
                                             [&over](const trace::CallResult&) { over = true; });
        while (!over) loop_.run_for(kSlice);
    }
}

void Verifier::add_interruption(GateReport& report, const Baseline& baseline) {
    std::vector<BaselinePrompt> prompts;
    for (const BaselineRow& row : baseline.rows) prompts.push_back(row.prompt);
    interrupt(prompts);
    add_round(report, baseline, "after interruption", prompts.size());
}

GateReport Verifier::verify(const Baseline& baseline) {
    GateReport report{.gate = "verify", .items = {}};
    for (const std::size_t batch : options_.batches)
        add_round(report, baseline, fmt::format("batch {}", batch), batch);
    if (options_.interruption) add_interruption(report, baseline);
    add_long(report);
    return report;
}

}  // namespace sluice::gates
