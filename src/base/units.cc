#include "base/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace sluice {
namespace {

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// Largest first, as they are written and printed.
constexpr auto kTimes = std::to_array<Unit>(
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}});
constexpr auto kSizes = std::to_array<Unit>({{"TiB", 1ULL << 40},
                                             {"TB", 1'000'000'000'000},
                                             {"GiB", 1ULL << 30},
                                             {"GB", 1'000'000'000},
                                             {"MiB", 1ULL << 20},
                                             {"MB", 1'000'000},
                                             {"KiB", 1ULL << 10},
                                             {"KB", 1'000},
                                             {"B", 1}});

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

/// Takes a number off the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number > kMost) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

std::string_view take_letters(std::string_view& text) {
    const std::size_t end = text.find_first_of("0123456789");
    const std::string_view letters = text.substr(0, end);
    text.remove_prefix(letters.size());
    return letters;
}

Error bad(std::string_view what, std::string_view text, std::string_view example) {
    return {ErrorCode::kInvalid,
            fmt::format("'{}' is not a {}; write it like {}", text, what, example)};
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    const Error error = bad("duration", text, "\"10m\", \"1h30m\" or \"250ms\"");
    std::string_view rest = text;
    std::uint64_t total = 0;
    const Unit* next = kTimes.data();
    if (rest.empty()) return std::unexpected(error);
    while (!rest.empty()) {
        const std::optional<std::uint64_t> number = take_number(rest);
        const std::string_view name = take_letters(rest);
        const Unit* const end = kTimes.data() + kTimes.size();
        while (next != end && next->name != name) ++next;
        if (!number || next == end) return std::unexpected(error);
        if (*number > (kMost - total) / next->factor) return std::unexpected(error);
        total += *number * next->factor;
        ++next;
    }
    return std::chrono::milliseconds(total);
}

std::string format_duration(std::chrono::milliseconds duration) {
    auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
    if (rest == 0) return "0s";
    std::string text;
    for (const auto& [name, factor] : kTimes) {
        if (rest / factor > 0) text += fmt::format("{}{}", rest / factor, name);
        rest %= factor;
    }
    return text;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
    std::string_view rest = text;
    const std::optional<std::uint64_t> number = take_number(rest);
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    for (const auto& [name, factor] : kSizes) {
        if (number && rest == name && *number <= kMost / factor) return *number * factor;
    }
    return std::unexpected(bad("size", text, "\"4GiB\" or \"512MiB\""));
}

std::string format_bytes(std::uint64_t bytes) {
    for (const auto& [name, factor] : kSizes) {
        const bool binary = name.size() != 2;
        if (binary && bytes >= factor && bytes % factor == 0) {
            return fmt::format("{}{}", bytes / factor, name);
        }
    }
    return fmt::format("{}B", bytes);
}

Result<HostPort> parse_host_port(std::string_view text) {
    const Error error = bad("HOST:PORT address", text, "\"127.0.0.1:8080\" or \"[::1]:8080\"");
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || text.size() > 300) return std::unexpected(error);
    std::string_view host = text.substr(0, colon);
    std::string_view digits = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    constexpr std::string_view kNotInHosts = " \t\r\n[]/@\"";
    if (host.empty() || host.find_first_of(kNotInHosts) != std::string_view::npos ||
        (!bracketed && host.find(':') != std::string_view::npos)) {
        return std::unexpected(error);
    }
    const std::optional<std::uint64_t> port = take_number(digits);
    if (!port || !digits.empty() || *port > 65'535) return std::unexpected(error);
    return HostPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string to_string(const HostPort& address) {
    const bool v6 = address.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

bool is_loopback(std::string_view host) {
    return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace sluice
