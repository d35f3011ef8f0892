#include "kvnode/store_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace sluice::kvnode {
namespace {

std::unexpected<Error> wrong(std::string_view what) {
    return std::unexpected(Error::invalid(fmt::format("the address of a store {}", what)));
}

std::optional<std::string> unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        unsigned value = 0;
        const std::string_view digits = text.substr(i + 1, 2);
        const auto [stop, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (error != std::errc() || stop != digits.data() + 2) return std::nullopt;
        out += static_cast<char>(value);
        i += 2;
    }
    return out;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

Result<void> read_login(std::string_view login, StoreUrl& url) {
    const std::size_t colon = login.find(':');
    const bool alone = colon == std::string_view::npos;
    auto user = unescaped(login.substr(0, colon));
    auto password = unescaped(alone ? std::string_view() : login.substr(colon + 1));
    if (!user || !password) return wrong("has a user or password with a broken %XX");
    if (password->empty()) return wrong("has an @, but no password before it");
    url.user = *std::move(user);
    url.password = *std::move(password);
    return {};
}

bool is_host(std::string_view text) {
    return !text.empty() && text.size() <= 255 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == '_' || c == ':';
    });
}

Result<void> read_place(std::string_view place, StoreUrl& url) {
    std::string_view port;
    if (place.starts_with('[')) {
        const std::size_t end = place.find(']');
        if (end == std::string_view::npos) return wrong("has a [ without a ]");
        url.host = place.substr(1, end - 1);
        port = place.substr(end + 1);
    } else {
        const std::size_t colon = std::min(place.find(':'), place.size());
        url.host = place.substr(0, colon);
        port = place.substr(colon);
    }
    if (!is_host(url.host)) return wrong("has no host, or one with odd characters");
    if (port.empty()) return {};
    const char* const end = port.data() + port.size();
    const auto [stop, error] = std::from_chars(port.data() + 1, end, url.port);
    if (!port.starts_with(':') || error != std::errc() || stop != end || url.port == 0)
        return wrong("needs a port from 1 to 65535, or none");
    return {};
}

bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

}  // namespace

std::string StoreUrl::name() const {
    if (kind == Kind::kDirectory) return "dir://" + path;
    return fmt::format("redis{}{}://{}:{}", secure ? "s" : "",
                       kind == Kind::kCluster ? "+cluster" : "",
                       host.contains(':') ? "[" + host + "]" : host, port);
}

std::string to_text(const StoreUrl& url) {
    std::string text = url.name();
    if (url.password.empty()) return text;
    text.insert(text.find("://") + 3,
                fmt::format("{}:{}@", escaped(url.user), escaped(url.password)));
    return text;
}

Result<StoreUrl> parse_store_url(std::string_view text) {
    StoreUrl url;
    if (take(text, "dir://")) {
        if (!text.starts_with('/') || text.contains('\0'))
            return wrong("needs an absolute path behind dir://");
        url.kind = StoreUrl::Kind::kDirectory;
        url.path = text;
        return url;
    }
    if (take(text, "rediss")) {
        url.secure = true;
    } else if (!take(text, "redis")) {
        return std::unexpected(Error::unsupported(
            "the address of a store begins with redis://, rediss://, redis+cluster://, "
            "rediss+cluster:// or dir://"));
    }
    if (take(text, "+cluster")) url.kind = StoreUrl::Kind::kCluster;
    if (!take(text, "://")) return wrong("has no ://");
    if (text.ends_with('/')) text.remove_suffix(1);
    if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
        if (auto read = read_login(text.substr(0, at), url); !read)
            return std::unexpected(read.error());
        text.remove_prefix(at + 1);
    }
    if (auto read = read_place(text, url); !read) return std::unexpected(read.error());
    return url;
}

}  // namespace sluice::kvnode
