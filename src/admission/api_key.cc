#include "admission/api_key.h"

#include <algorithm>

namespace sluice::admission {
namespace {

constexpr std::string_view kPrefix = "sk-sluice-";
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kSecretDigits = 64;
constexpr std::size_t kIdBytes = kIdDigits / 2;

bool is_hex(std::string_view text) {
    return std::ranges::all_of(
        text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool is_tenant_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return !name.empty() && name.size() <= 64 &&
           name.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_key_id(std::string_view id) { return id.size() == kIdDigits && is_hex(id); }

std::string key_text(KeyEntropy entropy) {
    std::string text(kPrefix);
    text += to_hex(entropy.first(kIdBytes));
    text += '-';
    return text += to_hex(entropy.subspan(kIdBytes));
}

std::optional<std::string_view> key_id(std::string_view text) {
    if (text.size() != kPrefix.size() + kIdDigits + 1 + kSecretDigits) return std::nullopt;
    if (!text.starts_with(kPrefix)) return std::nullopt;
    text.remove_prefix(kPrefix.size());
    if (!is_hex(text.substr(0, kIdDigits)) || text[kIdDigits] != '-' ||
        !is_hex(text.substr(kIdDigits + 1))) {
        return std::nullopt;
    }
    return text.substr(0, kIdDigits);
}

Sha256Digest key_digest(std::string_view text) {
    return Sha256().update("sluice api key 1\n").update(text).finish();
}

}  // namespace sluice::admission
