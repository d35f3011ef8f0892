#pragma once

// Reads the vocabulary out of a tokenizer.json (the format of the `tokenizers` library).
//
// The file describes a whole pipeline. Sluice runs one of them, DeepSeek V3's, so every part that
// would change an id is compared with it, and what differs is refused by name, never ignored.
//
// The ids of added tokens are taken as the file states them. The library itself counts upwards
// from the size of the vocabulary instead, which shifts every id behind a hole.

#include <string_view>

#include "base/error.h"
#include "text/vocabulary.h"

namespace sluice::text {

/// bos, eos and pad are the added tokens with DeepSeek's spellings: the file doesn't name them.
/// The error's place is a JSON path, or a line where the text is not JSON at all.
[[nodiscard]] Result<VocabularyData> parse_tokenizer_json(std::string_view json);

}  // namespace sluice::text
