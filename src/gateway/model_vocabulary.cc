#include "gateway/model_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/limits.h"
#include "checkpoint/mapped_file.h"
#include "text/vocabulary.h"
#include "text/vocabulary_json.h"

namespace sluice::gateway {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuiltInFile = "krill-q8_0.gguf";

/// Folders that may hold the built-in model, the first one first.
std::vector<fs::path> model_folders() {
    std::vector<fs::path> folders;
    if (const char* named = std::getenv("SLUICE_MODELS"); named != nullptr && *named != '\0') {
        folders.emplace_back(named);
    }
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        const fs::path above = program.parent_path().parent_path();
        folders.push_back(above / "models/krill");
        folders.push_back(above / "share/sluice/models/krill");
    }
    // Set for this file alone (src/CMakeLists.txt).
    folders.push_back(fs::path(SLUICE_SOURCE_TREE) / "models/krill");
    return folders;
}

Result<fs::path> find_built_in() {
    std::string looked;
    for (const fs::path& folder : model_folders()) {
        std::error_code error;
        fs::path file = folder / kBuiltInFile;
        if (fs::is_regular_file(file, error)) return file;
        looked += (looked.empty() ? "" : ", ") + folder.string();
    }
    return std::unexpected(
        Error::not_found(fmt::format("{} is in none of {}; SLUICE_MODELS names the folder it is in",
                                     kBuiltInFile, looked),
                         std::string(kBuiltInModel)));
}

std::vector<std::string> copied(const std::optional<std::vector<std::string_view>>& views) {
    if (!views) return {};
    return {views->begin(), views->end()};
}

/// An id that is no token at all becomes -1, which the tokenizer refuses by name.
std::optional<TokenId> find_token(const checkpoint::GgufFile& file, std::string_view key) {
    const std::optional<std::int64_t> id = file.find_int(key);
    if (!id) return std::nullopt;
    const bool fits = *id >= 0 && *id <= std::numeric_limits<TokenId>::max();
    return fits ? static_cast<TokenId>(*id) : TokenId{-1};
}

std::vector<std::int32_t> token_types(const checkpoint::GgufFile& file) {
    std::vector<std::int32_t> types;
    for (const std::int64_t type :
         file.find_ints("tokenizer.ggml.token_type").value_or(std::vector<std::int64_t>{})) {
        types.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(type, -1, 1'000)));
    }
    return types;
}

bool is_gguf(std::span<const std::byte> bytes) {
    constexpr std::string_view kMagic = "GGUF";
    return bytes.size() >= kMagic.size() &&
           std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                      [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

Result<text::Tokenizer> load_json(std::span<const std::byte> bytes) {
    if (bytes.size() > limits::kTokenizerFileBytes) {
        return std::unexpected(
            Error(ErrorCode::kOutOfRange, fmt::format("a tokenizer.json may have {} bytes, not {}",
                                                      limits::kTokenizerFileBytes, bytes.size())));
    }
    const auto data =
        text::parse_tokenizer_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!data) return std::unexpected(data.error());
    return text::Tokenizer::create(*data);
}

Result<text::Tokenizer> load_gguf(std::span<const std::byte> bytes) {
    const auto file = checkpoint::GgufFile::parse(bytes);
    if (!file) return std::unexpected(file.error());
    return read_tokenizer(*file);
}

}  // namespace

Result<fs::path> find_model(std::string_view name) {
    std::error_code error;
    fs::path path(name);
    if (fs::is_regular_file(path, error)) return path;
    if (name == kBuiltInModel) return find_built_in();
    if (fs::exists(path, error)) {
        return std::unexpected(Error::invalid("this is not a regular file", path.string()));
    }
    return std::unexpected(Error::not_found(
        fmt::format("there is no such file; `{}` is the built-in model", kBuiltInModel),
        path.string()));
}

Result<text::Tokenizer> read_tokenizer(const checkpoint::GgufFile& file) {
    text::GgufVocabulary gguf{
        .model = std::string(file.find_string("tokenizer.ggml.model").value_or("")),
        .pre = std::string(file.find_string("tokenizer.ggml.pre").value_or("")),
        .tokens = copied(file.find_strings("tokenizer.ggml.tokens")),
        .merges = copied(file.find_strings("tokenizer.ggml.merges")),
        .token_types = token_types(file),
        .bos = find_token(file, "tokenizer.ggml.bos_token_id"),
        .eos = find_token(file, "tokenizer.ggml.eos_token_id"),
        .pad = find_token(file, "tokenizer.ggml.padding_token_id")};
    const auto data = text::vocabulary_from_gguf(std::move(gguf));
    if (!data) return std::unexpected(data.error());
    return text::Tokenizer::create(*data);
}

Result<text::Tokenizer> load_tokenizer(const fs::path& path) {
    const auto found = find_model(path.string());
    if (!found) return std::unexpected(found.error());
    const auto mapped = checkpoint::MappedFile::open(*found);
    if (!mapped) return std::unexpected(mapped.error());
    auto tokenizer =
        is_gguf(mapped->bytes()) ? load_gguf(mapped->bytes()) : load_json(mapped->bytes());
    if (tokenizer) return tokenizer;
    // A colon, as between a file and a line: the place inside is no part of the path.
    const Error& error = tokenizer.error();
    const std::string inside = error.place().empty() ? "" : ": " + error.place();
    return std::unexpected(Error(error.code(), error.message(), found->string() + inside));
}

Result<protocol::Prompt> render(std::string_view dialect,
                                const protocol::Conversation& conversation,
                                const protocol::RenderOptions& options) {
    if (dialect == "deepseek-v4.1" || dialect == "v4.1") {
        return protocol::render_v41(conversation, options);
    }
    return std::unexpected(Error::unsupported(
        dialect.empty() ? "the model names no dialect, so it takes no conversations"
                        : fmt::format("the dialect {} is not supported; v4.1 is",
                                      text::quoted_spelling(dialect))));
}

}  // namespace sluice::gateway
