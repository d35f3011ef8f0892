#include "kv/block_name.h"

#include <fmt/format.h>

#include <charconv>

namespace sluice::kv {
namespace {

constexpr std::string_view kScheme = "kv:";

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (is_plain(c)) {
            out += c;
        } else {
            fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

std::optional<std::string> unescaped(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (text.front() != '%') {
            out += text.front();
            text.remove_prefix(1);
            continue;
        }
        if (text.size() < 3) return std::nullopt;
        unsigned value = 0;
        const char* const end = text.data() + 3;
        const auto [stop, error] = std::from_chars(text.data() + 1, end, value, 16);
        if (error != std::errc() || stop != end) return std::nullopt;
        out += static_cast<char>(value);
        text.remove_prefix(3);
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
    return fmt::format("{}{}:{}:{}", kScheme, escaped(name.tenant), to_string(name.retention),
                       to_hex(name.key));
}

std::optional<BlockName> parse_block_name(std::string_view wire) {
    if (!wire.starts_with(kScheme)) return std::nullopt;
    std::string_view rest = wire.substr(kScheme.size());
    const auto tenant = unescaped(cut(rest));
    const auto retention = retention_from(cut(rest));
    const auto key = digest_from_hex(rest);
    if (!tenant || !retention || !key) return std::nullopt;
    BlockName name{.tenant = *tenant, .retention = *retention, .key = *key};
    if (to_wire(name) != wire) return std::nullopt;
    return name;
}

}  // namespace sluice::kv
