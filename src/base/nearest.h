#pragma once

// "Unknown key 'worker'; did you mean 'workers'?": one way to say it, for files and command lines.

#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// Fewest insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
/// Only the first 64 bytes of each are looked at.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, or empty if none is near enough to be a slip of the fingers.
[[nodiscard]] std::string_view nearest_name(std::string_view name,
                                            std::span<const std::string_view> candidates);

/// "; did you mean 'workers'?", or empty.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string_view> candidates);

}  // namespace sluice
