// Four parts with a zero byte between: a tokenizer.json, or what stands in its list of added tokens;
// more members of its vocabulary; its merges; text. The first part is read as a file of its own, and
// the first three inside a good file, which few inputs would come to look like by chance.

#include <algorithm>
#include <array>
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

constexpr std::string_view kPipeline = R"json(
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated"},
    {"type": "Split", "pattern": {"Regex": "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+"},
     "behavior": "Isolated"},
    {"type": "Split", "pattern": {"Regex": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
     "behavior": "Isolated"},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
  "decoder": {"type": "ByteLevel"})json";

void require(bool holds) {
    if (!holds) std::abort();
}

/// Members for the 256 bytes and for a few tokens that merges can build.
std::string vocabulary_members() {
    std::string members;
    for (int byte = 0; byte < 256; ++byte) {
        std::string spelling;
        append_utf8(spelling, spelling_of_byte(static_cast<std::uint8_t>(byte)));
        if (spelling == "\"" || spelling == "\\") spelling.insert(0, "\\");
        members += (byte ? ",\"" : "\"") + spelling + "\":" + std::to_string(byte);
    }
    return members + R"(,"aa":256,"aaa":257,"aaaa":258,"ab":259,"aab":260,"Ġa":261,"bb":262)";
}

std::string file_of(std::string_view added, std::string_view vocabulary, std::string_view merges) {
    static const std::string members = vocabulary_members();
    std::string file = "{\"added_tokens\":[";
    file.append(added).append("],").append(kPipeline).append(R"(,"model":{"type":"BPE","vocab":{)");
    file.append(members).append(vocabulary).append("},\"merges\":[").append(merges).append("]}}");
    return file;
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

void check_file(std::string_view file, std::string_view text) {
    const auto vocabulary = parse_tokenizer_json(file);
    if (!vocabulary) return;
    const auto tokenizer = Tokenizer::create(*vocabulary);
    if (tokenizer) check(*tokenizer, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string good = file_of(R"({"id":400,"content":"<a>","special":true})", "",
                                            R"("a a","aa a","a b","Ġ a","aa aa","aa b","b b")");
    static const Tokenizer tokenizer = *Tokenizer::create(*parse_tokenizer_json(good));

    std::string_view rest(reinterpret_cast<const char*>(data), size);
    std::array<std::string_view, 3> parts;
    for (std::string_view& part : parts) {
        const std::size_t end = std::min(rest.find('\0'), rest.size());
        part = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    check(tokenizer, rest);
    check(tokenizer, parts[0]);
    check_file(parts[0], rest);
    check_file(file_of(parts[0], parts[1], parts[2]), rest);
    return 0;
}
