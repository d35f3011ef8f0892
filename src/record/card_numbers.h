#pragma once

// How the card's numbers look to people, the same in the terminal and on the page.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::record {

inline constexpr const char* kNothing = "–";  // Not measured.

/// "0.42 ms", "12 ms", "1.3 s"
[[nodiscard]] std::string format_ms(std::optional<double> ms);
/// "99.50 %"
[[nodiscard]] std::string format_share(std::optional<double> share);
/// Four significant digits.
[[nodiscard]] std::string format_cost(std::optional<double> cost);
/// "141 GiB", to three digits.
[[nodiscard]] std::string format_memory(std::uint64_t bytes);
/// Without control characters: an engine says these texts of itself, and no line may be forged.
[[nodiscard]] std::string plain(std::string_view text);
/// "2026-11-30 14:05 UTC"
[[nodiscard]] std::string format_time(std::int64_t unix_ms);

}  // namespace sluice::record
