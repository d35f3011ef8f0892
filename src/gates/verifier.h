#pragma once

// The second gate: does a running pool give the baseline's answers, whatever runs beside them? Each
// round asks all prompts of the baseline again: one at a time, many at a time, and after an
// interruption in the middle. Long prompts have no stored answer; they must agree with themselves.
//
// Blocks its thread until a round is over.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gates/baseline.h"
#include "gates/gate_report.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "trace/stream_call.h"

namespace sluice::gates {

/// Told again and again while a round runs: how many of its answers are there.
using VerifyProgress =
    std::function<void(const std::string& round, std::size_t done, std::size_t all)>;

struct VerifyOptions {
    std::vector<std::size_t> batches = {1, 4, 16};       ///< Requests at a time.
    std::vector<std::size_t> long_words = {700, 2'500};  ///< Lengths of the long prompts.
    bool interruption = true;
    double min_equal = 1.0;      ///< Share of equal answers that passes.
    net::HttpHeaders headers{};  ///< Sent with each request, such as x-sluice-pool.
};

class Verifier {
public:
    Verifier(net::EventLoop& loop, net::HttpClient& client, trace::LoadTarget target,
             VerifyOptions options, VerifyProgress progress);

    /// The answers to `prompts`, `at_a_time` of them in flight. An error names the first that
    /// failed.
    [[nodiscard]] Result<std::vector<BaselineOutput>> ask(
        const std::vector<BaselinePrompt>& prompts, std::size_t at_a_time,
        const std::string& round);

    /// All rounds; a round whose requests fail is a failed item.
    [[nodiscard]] GateReport verify(const Baseline& baseline);

private:
    class Round;

    void add_round(GateReport& report, const Baseline& baseline, const std::string& subject,
                   std::size_t at_a_time);
    void add_long(GateReport& report);
    void add_interruption(GateReport& report, const Baseline& baseline);
    /// Starts each prompt and closes the connection at its first token.
    void interrupt(const std::vector<BaselinePrompt>& prompts);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    trace::LoadTarget target_;
    VerifyOptions options_;
    VerifyProgress progress_;
};

}  // namespace sluice::gates
