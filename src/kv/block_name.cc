#include "kv/block_name.h"

#include <algorithm>
#include <utility>

namespace sluice::kv {
namespace {

constexpr std::string_view kScheme = "kv:";
constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/// As names write it, in capitals; nothing if it is none.
std::optional<unsigned> nibble_of(char c) {
    const std::size_t at = kDigits.find(c);
    return at == std::string_view::npos ? std::nullopt : std::optional(static_cast<unsigned>(at));
}

void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        if (is_plain(c)) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
        }
    }
}

/// Nothing unless `append_escaped` writes it the same.
std::optional<std::string> unescaped(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const char c = text.front();
        text.remove_prefix(1);
        if (is_plain(c)) {
            out += c;
            continue;
        }
        if (c != '%' || text.size() < 2) return std::nullopt;
        const auto high = nibble_of(text[0]);
        const auto low = nibble_of(text[1]);
        if (!high || !low) return std::nullopt;
        out += static_cast<char>(*high << 4 | *low);
        if (is_plain(out.back())) return std::nullopt;
        text.remove_prefix(2);
    }
    return out;
}

/// Up to the next colon, which goes, too.
std::string_view cut(std::string_view& text) {
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    return part;
}

}  // namespace

std::string to_wire(const BlockName& name) {
    std::string wire(kScheme);
    append_escaped(wire, name.tenant);
    wire += ':';
    wire += to_string(name.retention);
    wire += ':';
    wire += to_hex(name.key);
    return wire;
}

std::optional<BlockName> parse_block_name(std::string_view wire) {
    if (!wire.starts_with(kScheme)) return std::nullopt;
    std::string_view rest = wire.substr(kScheme.size());
    auto tenant = unescaped(cut(rest));
    const auto retention = retention_from(cut(rest));
    const auto key = digest_from_hex(rest);
    if (!tenant || !retention || !key) return std::nullopt;
    return BlockName{.tenant = std::move(*tenant), .retention = *retention, .key = *key};
}

}  // namespace sluice::kv
