#include "gateway/key_ring.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/private_file.h"

namespace sluice::gateway {
namespace {

admission::UnixTime now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

Result<KeyRing> KeyRing::load(std::string file) {
    KeyRing ring;
    ring.file_ = std::move(file);
    ring.version_ = file_version(ring.file_);
    if (ring.version_.empty()) return ring;
    if (auto done = ring.read(); !done) return std::unexpected(done.error());
    return ring;
}

Result<void> KeyRing::read() {
    const auto text = read_small_file(file_, limits::kApiKeyFileBytes);
    if (!text) return std::unexpected(text.error());
    auto table = admission::KeyTable::parse(*text);
    if (!table) {
        const Error& error = table.error();
        return std::unexpected(Error(error.code(), error.message(), file_ + ": " + error.place()));
    }
    table_ = *std::move(table);
    return {};
}

void KeyRing::refresh() {
    if (file_.empty()) return;
    std::string version = file_version(file_);
    if (version == version_) return;
    version_ = std::move(version);
    if (const auto done = read(); !done) {
        log::error("the API keys stay as they were: {}", done.error().to_string());
    } else {
        log::info("{} API keys were read", table_.keys().size());
    }
}

std::size_t KeyRing::tenants() const {
    std::set<std::string_view> names;
    for (const admission::ApiKey& key : table_.keys()) names.insert(key.tenant);
    return names.size();
}

bool KeyRing::has_valid_admin_key() const {
    return std::ranges::any_of(table_.keys(), [at = now()](const admission::ApiKey& key) {
        return key.admin && key.valid_at(at);
    });
}

const admission::ApiKey* KeyRing::authenticate(std::string_view text) const {
    return table_.authenticate(text, now());
}

}  // namespace sluice::gateway
