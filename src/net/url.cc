#include "net/url.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "net/ascii.h"

namespace sluice::net {
namespace {

std::unexpected<Error> bad_url(std::string_view text, std::string_view why) {
    return std::unexpected(
        Error::invalid("the URL \"" + std::string(text) + "\" " + std::string(why), "url"));
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
    std::uint16_t port = 0;
    const char* const begin = std::to_address(digits.begin());
    const char* const end = std::to_address(digits.end());
    const auto [stop, problem] = std::from_chars(begin, end, port);
    if (problem != std::errc{} || stop != end || port == 0) return std::nullopt;
    return port;
}

/// Cuts "host", "host:port", "[v6]" or "[v6]:port" in two; the port is empty if none is given.
std::optional<std::pair<std::string_view, std::string_view>> split_authority(
    std::string_view authority) {
    if (!authority.starts_with('[')) {
        const std::size_t colon = authority.find(':');
        if (colon == std::string_view::npos) return std::pair(authority, std::string_view());
        if (colon + 1 == authority.size()) return std::nullopt;
        return std::pair(authority.substr(0, colon), authority.substr(colon + 1));
    }
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view host = authority.substr(1, close - 1);
    const std::string_view rest = authority.substr(close + 1);
    if (rest.empty()) return std::pair(host, rest);
    if (!rest.starts_with(':') || rest.size() == 1) return std::nullopt;
    return std::pair(host, rest.substr(1));
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
    const auto unusable = [](char c) { return is_control(c) || c == ' '; };
    if (std::ranges::any_of(text, unusable)) return bad_url("", "has a space or control character");
    const std::size_t scheme_end = text.find("://");
    if (scheme_end == std::string_view::npos) return bad_url(text, "does not start with http://");
    const std::string_view scheme = text.substr(0, scheme_end);
    const bool secure = equals_ignoring_case(scheme, "https");
    if (!secure && !equals_ignoring_case(scheme, "http")) {
        return std::unexpected(Error::unsupported(
            "the URL \"" + std::string(text) + "\" is neither http:// nor https://", "url"));
    }
    std::string_view rest = text.substr(scheme_end + 3);
    rest = rest.substr(0, rest.find('#'));
    const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
    const std::string_view authority = rest.substr(0, authority_end);
    if (authority.find('@') != std::string_view::npos) return bad_url(text, "has a user name");

    const auto parts = split_authority(authority);
    if (!parts || parts->first.empty()) return bad_url(text, "has no valid host");
    Url url{.host = std::string(parts->first),
            .secure = secure,
            .port = static_cast<std::uint16_t>(secure ? 443 : 80),
            .authority = std::string(authority),
            .target = std::string(rest.substr(authority_end))};
    if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
    if (parts->second.empty()) return url;
    const auto port = parse_port(parts->second);
    if (!port) return bad_url(text, "has a port that is not a number from 1 to 65535");
    url.port = *port;
    return url;
}

}  // namespace sluice::net
