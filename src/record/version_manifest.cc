#include "record/version_manifest.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/hash.h"
#include "base/limits.h"
#include "base/version.h"
#include "port/json_writer.h"
#include "record/json_text.h"

namespace sluice::record {
std::string this_gateway() { return fmt::format("{} {}", version().version, version().commit); }

VersionManifest make_manifest(const port::ServerInfo& info) {
    return {.engine = info.engine,
            .engine_version = info.version,
            .engine_commit = info.commit,
            .build_flags = info.build_flags,
            .model = info.model,
            .weights = info.fingerprint,
            .numerics_id = info.numerics_id,
            .tokenizer_digest = info.tokenizer_digest,
            .dialect = info.dialect,
            .driver = info.driver,
            .hardware = info.hardware,
            .topology = info.topology.empty() ? fmt::format("dp={}", info.dp_ranks) : info.topology,
            .kv_reuse = info.kv_reuse,
            .gateway = this_gateway()};
}

std::string to_json(const VersionManifest& manifest) {
    std::string text;
    port::JsonWriter writer(text);
    writer.begin_object();
    visit_fields(manifest, [&](std::string_view name, const std::string& value) {
        if (!value.empty()) writer.field(name, value);
    });
    writer.end_object();
    return text;
}

Result<VersionManifest> parse_version_manifest(std::string_view json) {
    const auto object = parse_object(json);
    if (!object) return std::unexpected(object.error());
    VersionManifest manifest;
    visit_fields(manifest, [&](std::string_view name, std::string& value) {
        value = text_field(*object, name).substr(0, limits::kPortTextBytes);
    });
    return manifest;
}

std::string digest(const VersionManifest& manifest) {
    return "fp_" + to_hex(sha256(to_json(manifest))).substr(0, 16);
}

}  // namespace sluice::record
