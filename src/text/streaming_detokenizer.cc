#include "text/streaming_detokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace sluice::text {

std::string StreamingDetokenizer::push(TokenId token) {
    pending_ += tokenizer_.bytes(token);
    std::string text;
    std::string_view rest = pending_;
    while (!rest.empty()) {
        const Utf8Character character = decode_utf8(rest);
        if (character.status == Utf8Status::kTruncated) break;
        append_utf8(text, character.code_point);
        rest.remove_prefix(character.length);
    }
    pending_ = std::string(rest);
    return text;
}

std::string StreamingDetokenizer::finish() {
    return replace_invalid_utf8(std::exchange(pending_, {}));
}

}  // namespace sluice::text
