// A tokenizer.json, then a zero byte, then text to encode with it. Without a usable file the text
// goes through a vocabulary of bytes, so that the encoder is exercised by every input.

#include <cstdint>
#include <cstdlib>

#include "text/byte_alphabet.h"
#include "text/streaming_detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/vocabulary_json.h"

namespace {

using namespace sluice;
using namespace sluice::text;

void require(bool holds) {
    if (!holds) std::abort();
}

VocabularyData byte_vocabulary() {
    VocabularyData data;
    for (int byte = 0; byte < 256; ++byte) {
        append_utf8(data.tokens.emplace_back(), spelling_of_byte(static_cast<std::uint8_t>(byte)));
    }
    for (const char* merge : {"a a", "aa a", "Ġ a", "b c", "aa bc"}) {
        data.merges.emplace_back(merge);
        std::string result = merge;
        result.erase(result.find(' '), 1);
        data.tokens.push_back(result);
    }
    data.added = {{.id = 400, .content = "<a>", .special = true}};
    return data;
}

void check(const Tokenizer& tokenizer, std::string_view text) {
    std::vector<TokenId> plain;
    tokenizer.encode(text, plain);
    require(tokenizer.decode(plain) == text);
    for (const TokenId id : plain) require(!tokenizer.is_control(id));

    const std::vector<TokenId> control = tokenizer.encode_with_control(text);
    require(tokenizer.decode(control) == text);
    StreamingDetokenizer stream(tokenizer);
    std::string joined;
    for (const TokenId id : control) joined += stream.push(id);
    joined += stream.finish();
    require(joined == replace_invalid_utf8(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Tokenizer bytes = *Tokenizer::create(byte_vocabulary());
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t end = std::min(input.find('\0'), input.size());
    const std::string_view text = input.substr(std::min(end + 1, input.size()));
    check(bytes, text);

    const auto vocabulary = parse_tokenizer_json(input.substr(0, end));
    if (!vocabulary) return 0;
    const auto tokenizer = Tokenizer::create(*vocabulary);
    if (tokenizer) check(*tokenizer, text);
    return 0;
}
