#pragma once

// `sluice bench load`: load on any OpenAI-compatible address, from a trace or a mix, open or closed loop.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app/api_target.h"
#include "app/command.h"

namespace sluice::app {

struct BenchLoadOptions {
    ApiOptions api;
    std::string trace;  ///< File; empty: `mix`.
    std::string mix = "chat";
    std::size_t concurrency = 0;
    std::optional<double> rate;
    std::size_t requests = 0;     ///< 0: 200 of a mix, all of a trace.
    std::uint32_t input_max = 0;  ///< Longer prompts and answers are cut; 0: none is.
    std::uint32_t output_max = 0;
    std::uint64_t seed = 0;
    bool ignore_eos = false;
    std::string slo_ttft;  ///< "500ms"
    std::string slo_tbt;
    std::string output;  ///< JSON lines, a row per request.
    std::string html;    ///< The card as a page.
    bool json = false;
};

/// Declares `load` and its options below `bench`; they are filled in when it is parsed.
CLI::App* define_bench_load(CLI::App& bench, BenchLoadOptions& options);

/// Returns an exit code: 1 if no request succeeded.
[[nodiscard]] int bench_load(const BenchLoadOptions& options);

}  // namespace sluice::app
