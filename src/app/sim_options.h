#pragma once

// What `sluice sim` is asked for, as it stands on the command line.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::app {

struct SimOptions {
    std::string trace;
    std::string mix;
    std::optional<double> rate;
    double speed = 1.0;
    std::size_t requests = 0;
    std::string slice;
    std::uint32_t input_max = 0;
    std::uint32_t output_max = 0;
    double image_share = 0.0;
    std::uint32_t image_tokens = 1'024;

    std::uint32_t workers = 8;
    std::uint32_t encode = 0;
    std::uint32_t prefill = 0;
    std::uint32_t decode = 0;
    std::uint32_t per_machine = 1;
    std::vector<std::string> policies{"default"};
    bool no_tiers = false;

    std::string engine;
    std::optional<std::uint32_t> blocks;
    std::optional<double> prefill_rate;
    std::optional<double> attention;
    std::string order;

    std::string kv_dram;
    std::uint32_t kv_nodes = 0;
    std::string kv_node_dram;
    std::string kv_policy = "worth";
    std::optional<double> kv_dram_load;
    std::optional<double> kv_node_load;

    std::string faults;
    std::string deadline = "10m";
    std::string slo_ttft = "10s";
    std::string slo_tbt = "200ms";
    std::uint64_t seed = 0;
    std::string out;
    bool json = false;
};

/// `options` outlives the command.
void add_sim_options(CLI::App& command, SimOptions& options);

}  // namespace sluice::app
