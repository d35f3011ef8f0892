#pragma once

// What the commands that work on models share: reading what a user names, and saying why not.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"
#include "engine/engine.h"

namespace sluice::app {

/// How a command prints what it found.
enum class Form : std::uint8_t { kText, kJson };

/// The content of a file, or of standard input for "-". `kOutOfRange` beyond `bytes_max`.
[[nodiscard]] Result<std::string> read_input(const std::string& path, std::size_t bytes_max);

/// Token ids separated by commas or spaces, or `{"ids":[...]}`, the form `tokenize` prints.
[[nodiscard]] Result<std::vector<TokenId>> parse_ids(std::string_view text);

/// A number of threads, or "auto": engine::kAutoThreads.
[[nodiscard]] Result<std::size_t> parse_threads(const std::string& text);

/// "off", "lookup", "mtp", or "auto" for what is measured to be faster.
[[nodiscard]] Result<engine::Speculation> parse_speculation(const std::string& text);

/// Ids a user gave, on the command line or in a file.
struct IdsOption {
    std::string text;
    std::string file;
};
[[nodiscard]] Result<std::vector<TokenId>> read_ids(const IdsOption& option);

/// Writes bytes as they are, and a newline after them where a person is looking.
void print_bytes(std::string_view bytes);

}  // namespace sluice::app
