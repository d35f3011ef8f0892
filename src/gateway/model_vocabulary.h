#pragma once

// Where a model's files are, and what of them writes and reads its prompts: the tokenizer and the
// dialect. Neither needs the weights, so a gateway opens the same file as its workers but reads only
// the metadata.

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "checkpoint/gguf_file.h"
#include "protocol/dialect_v41.h"
#include "text/tokenizer.h"

namespace sluice::gateway {

/// The name of the model that comes with Sluice.
inline constexpr std::string_view kBuiltInModel = "krill";

/// `name` itself if it is a path to something, or the file of the built-in model: looked for in the
/// folder that the environment variable SLUICE_MODELS names, beside the program, and in the source
/// tree it was built from. `kNotFound` tells where it was looked for.
[[nodiscard]] Result<std::filesystem::path> find_model(std::string_view name);

/// The tokenizer of an open checkpoint. Errors name the metadata key.
[[nodiscard]] Result<text::Tokenizer> read_tokenizer(const checkpoint::GgufFile& file);

/// From a GGUF file, a tokenizer.json (told apart by their first bytes) or the name of the built-in
/// model. Errors name the file.
[[nodiscard]] Result<text::Tokenizer> load_tokenizer(const std::filesystem::path& path);

/// The prompt in the dialect of this name, as checkpoints ("deepseek-v4.1") or people ("v4.1") spell
/// it. `kUnsupported` for another one and for none; else the errors of the dialect.
[[nodiscard]] Result<protocol::Prompt> render(std::string_view dialect,
                                              const protocol::Conversation& conversation,
                                              const protocol::RenderOptions& options = {});

}  // namespace sluice::gateway
