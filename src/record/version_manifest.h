#pragma once

// What ran a leg of a request, all the way down: two answers with equal manifests came out of equal
// software on equal hardware. Clients get its digest as `system_fingerprint`; `sluice ctl where`
// tells what a digest stands for.

#include <string>
#include <string_view>

#include "base/error.h"
#include "port/server_info.h"

namespace sluice::record {

/// Empty texts are unknown.
struct VersionManifest {
    std::string engine;          ///< "native", "openai", ...
    std::string engine_version;  ///< "0.1.0"
    std::string engine_commit;   ///< Of its source.
    std::string build_flags;
    std::string model;        ///< Its name, for people.
    std::string weights;      ///< Digest of weights and hyper-parameters.
    std::string numerics_id;  ///< Arithmetic, packing, KV dtype.
    std::string tokenizer_digest;
    std::string dialect;   ///< How a conversation becomes a prompt: "deepseek-v4.1".
    std::string driver;    ///< Of the device.
    std::string hardware;  ///< "8 x H200", "AMD EPYC 9654, AVX2"
    std::string topology;  ///< "tp=8 dp=2", "P:D=2:1"
    std::string kv_reuse;  ///< Whose cached blocks it takes: "exact" or "compatible" builds'.
    std::string gateway;   ///< Version and commit of the Sluice in front.

    bool operator==(const VersionManifest&) const = default;
};

/// Calls visit(name, field) for each field, in the order that the digest rests on.
template <class Manifest, class Visit>
void visit_fields(Manifest& manifest, Visit&& visit) {
    visit("engine", manifest.engine);
    visit("engine_version", manifest.engine_version);
    visit("engine_commit", manifest.engine_commit);
    visit("build_flags", manifest.build_flags);
    visit("model", manifest.model);
    visit("weights", manifest.weights);
    visit("numerics_id", manifest.numerics_id);
    visit("tokenizer_digest", manifest.tokenizer_digest);
    visit("dialect", manifest.dialect);
    visit("driver", manifest.driver);
    visit("hardware", manifest.hardware);
    visit("topology", manifest.topology);
    visit("kv_reuse", manifest.kv_reuse);
    visit("gateway", manifest.gateway);
}

/// Of a leg on a worker that says `info` of itself; `gateway` is this process.
[[nodiscard]] VersionManifest make_manifest(const port::ServerInfo& info);

/// Version and commit of this process, as `VersionManifest::gateway` has it.
[[nodiscard]] std::string this_gateway();

/// An object of the fields that are known, always in the same order.
[[nodiscard]] std::string to_json(const VersionManifest& manifest);
/// Unknown keys are ignored, so that a newer Sluice's records can be read.
[[nodiscard]] Result<VersionManifest> parse_version_manifest(std::string_view json);

/// "fp_" and 16 hexadecimal digits of the SHA-256 of to_json.
[[nodiscard]] std::string digest(const VersionManifest& manifest);

}  // namespace sluice::record
