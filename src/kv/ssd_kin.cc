#include "kv/ssd_kin.h"

#include <string>

#include "base/hash.h"
#include "kv/block_value.h"
#include "kv/byte_codec.h"

namespace sluice::kv {
namespace {

constexpr std::string_view kScheme = "kv:";

struct Parts {
    std::string_view tenant;
    std::string_view key;
};

/// Of "kv:{tenant}:{class}:{key}"; of any other name, all of it is the key.
Parts parts_of(std::string_view name) {
    const std::size_t key = name.rfind(':');
    if (!name.starts_with(kScheme) || key <= kScheme.size()) return {.tenant = {}, .key = name};
    const std::size_t retention = name.rfind(':', key - 1);
    if (retention < kScheme.size()) return {.tenant = {}, .key = name};
    return {.tenant = name.substr(0, retention), .key = name.substr(key + 1)};
}

std::uint64_t id_of(const Parts& parts) {
    std::string text(parts.tenant);
    text += ':';
    text += parts.key;
    const std::uint64_t id = checksum_of(text).low;
    return id == kSsdNoKin ? 1 : id;
}

}  // namespace

std::uint64_t ssd_kin(std::string_view name) { return id_of(parts_of(name)); }

std::uint64_t ssd_parent(std::string_view name, std::string_view value) {
    const Parts parts = parts_of(name);
    if (parts.tenant.empty()) return kSsdNoKin;
    const auto header = read_block_start(value.substr(0, kBlockStartBytes));
    if (!header || header->parent == header->key) return kSsdNoKin;
    return id_of({.tenant = parts.tenant, .key = to_hex(header->parent)});
}

}  // namespace sluice::kv
