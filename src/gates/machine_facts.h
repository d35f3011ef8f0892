#pragma once

// What this machine is, as far as an engine's support matrix asks: read from the kernel and from the
// version lines of the tools that are installed. A tool that is not there leaves its field empty.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::gates {

struct Accelerator {
    std::string vendor;        ///< "nvidia" or "ascend"
    std::string name;          ///< "NVIDIA B200"
    std::string architecture;  ///< "sm_100"; of Ascend its chip, "950"
    std::string driver;
    std::uint64_t memory_bytes = 0;  ///< 0 is unknown.
};

struct MachineFacts {
    std::string system;                     ///< "Linux"
    std::string kernel;                     ///< "6.1.0-31-amd64"
    std::string machine;                    ///< "x86_64"
    std::string cpu;                        ///< "AMD EPYC 9654 96-Core Processor"
    std::vector<std::string> cpu_features;  ///< As /proc/cpuinfo names them.
    std::uint64_t cpus = 0;
    std::uint64_t memory_bytes = 0;
    std::string gcc;     ///< "13.2.0"; empty if there is none, as the next three.
    std::string python;  ///< "3.12.4"
    std::string cuda;    ///< "13.0"
    std::string cann;    ///< "9.2.0"
    std::vector<Accelerator> accelerators;

    [[nodiscard]] bool has_feature(std::string_view name) const;
};

/// Runs the tools, each for at most a few seconds.
[[nodiscard]] MachineFacts collect_machine_facts();

[[nodiscard]] std::string to_json(const MachineFacts& facts);

// The parts of it, as pure functions of what the tools print.

/// The first dotted number in `text`: "gcc (Debian 12.2.0-14) 12.2.0" gives "12.2.0".
[[nodiscard]] std::string first_version(std::string_view text);
/// Whether `version` is `least` or newer, number by number; false if it is empty.
[[nodiscard]] bool at_least(std::string_view version, std::string_view least);
/// Of `nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader,nounits`.
[[nodiscard]] std::vector<Accelerator> parse_nvidia_smi(std::string_view text);
/// Of `npu-smi info`: a row per chip whose second column starts with its name.
[[nodiscard]] std::vector<Accelerator> parse_npu_smi(std::string_view text);
/// "model name" and "flags" of /proc/cpuinfo.
void parse_cpuinfo(std::string_view text, MachineFacts& facts);

}  // namespace sluice::gates
