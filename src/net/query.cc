#include "net/query.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace sluice::net {
namespace {

std::optional<std::string> decode(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            plain += text[i] == '+' ? ' ' : text[i];
            continue;
        }
        unsigned value = 0;
        const char* const digits = text.data() + i + 1;
        if (i + 2 >= text.size()) return std::nullopt;
        const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
        if (error != std::errc() || end != digits + 2) return std::nullopt;
        plain += static_cast<char>(value);
        i += 2;
    }
    return plain;
}

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").find(c) != std::string_view::npos;
}

}  // namespace

Result<std::map<std::string, std::string, std::less<>>> parse_query(std::string_view query) {
    std::map<std::string, std::string, std::less<>> fields;
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view field = query.substr(0, end);
        query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
        if (field.empty()) continue;
        const std::size_t equals = field.find('=');
        auto name = decode(field.substr(0, equals));
        auto value = decode(equals == std::string_view::npos ? "" : field.substr(equals + 1));
        if (!name || !value)
            return std::unexpected(Error::invalid("has a malformed escape", "query"));
        fields[std::move(*name)] = std::move(*value);
    }
    return fields;
}

std::string percent_encode(std::string_view text) {
    std::string encoded;
    for (const char c : text) {
        if (is_unreserved(c)) {
            encoded += c;
        } else {
            encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return encoded;
}

}  // namespace sluice::net
