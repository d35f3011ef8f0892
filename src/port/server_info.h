#pragma once

// What an engine says of itself at GET /server_info.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::port {

/// One part of a model's persistent state.
struct KvComponent {
    std::string name;           ///< "mla"
    std::uint32_t quantum = 1;  ///< State exists at multiples of this many tokens.
    std::uint32_t replay = 0;   ///< Tokens to compute again before a hit is usable.
    std::uint32_t min_hit = 0;  ///< Shortest useful hit in tokens.
    bool hit_exact = true;      ///< A hit gives the same bits as computing.
    // With the fingerprint, the numerics id, block_tokens and a salt, what the keys of blocks are
    // made from (kv/block_key.h): whoever knows a prompt's tokens can name its blocks.
    std::uint32_t shard = 0;
    std::string layout{};
    std::string dtype{};
    bool operator==(const KvComponent&) const = default;
};

struct ServerInfo {
    std::string engine = "native";
    std::string model;        ///< Name of the model, for example "Krill".
    std::string fingerprint;  ///< Digest of the weights and hyper-parameters.
    std::string numerics_id;  ///< Arithmetic version + packing + KV dtype.
    std::string tokenizer_digest;
    std::string dialect;  ///< "deepseek-v4.1"
    std::vector<KvComponent> kv_components;
    std::uint32_t block_tokens = 64;
    std::uint64_t context_length = 0;  ///< Prompt and output together, in tokens.
    std::uint64_t pool_tokens = 0;
    /// The position at which computing a prompt token's attention costs as much as the rest of it; 0:
    /// unknown.
    std::uint64_t attention_tokens = 0;
    std::uint32_t max_running = 0;
    std::uint32_t max_waiting = 0;
    std::uint32_t vocabulary = 0;
    std::uint32_t dp_ranks = 1;
    std::string failure_group;
    std::uint64_t device_memory_bytes = 0;
    std::string version;
    std::string commit;
    std::string build_flags;
    std::string hardware;  ///< For people: "8 x H200", a CPU's name.
    std::string driver;    ///< Of the device; empty on a CPU.
    std::string topology;  ///< "tp=8 dp=2"; empty if there is only one rank.
    std::string kv_reuse;  ///< Whose blocks it takes: "exact", its own build's; or "compatible".
    std::string threads;   ///< That compute a step: "2", or what was measured.

    bool operator==(const ServerInfo&) const = default;
};

/// Whether one goes on with the other's tokens and blocks bit for bit.
[[nodiscard]] inline bool compute_alike(const ServerInfo& left, const ServerInfo& right) {
    return left.fingerprint == right.fingerprint && left.numerics_id == right.numerics_id;
}

[[nodiscard]] std::string to_json(const ServerInfo& info);
[[nodiscard]] Result<ServerInfo> parse_server_info(std::string_view json);

}  // namespace sluice::port
