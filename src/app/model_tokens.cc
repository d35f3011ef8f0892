// `sluice model tokenize` and `detokenize`.

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "app/command.h"
#include "app/model_verbs.h"
#include "base/limits.h"
#include "gateway/model_vocabulary.h"
#include "text/utf8.h"

namespace sluice::app {
namespace {

/// The bytes of a token on one line, with escapes a person can read.
std::string shown_piece(std::string_view bytes) {
    std::string shown;
    for (std::size_t at = 0; at < bytes.size();) {
        const text::Utf8Character character = text::decode_utf8(bytes.substr(at));
        const bool readable = character.status == text::Utf8Status::kValid &&
                              character.code_point >= 0x20 && character.code_point != 0x7F;
        for (std::size_t i = 0; i < character.length; ++i) {
            const auto byte = static_cast<unsigned char>(bytes[at + i]);
            if (readable) {
                shown += bytes[at + i];
            } else if (byte == '\n') {
                shown += "\\n";
            } else {
                shown += fmt::format("\\x{:02x}", byte);
            }
        }
        at += character.length;
    }
    return shown;
}

std::string pieces_text(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::string text;
    for (const TokenId id : ids) {
        text += fmt::format("{}\t{}\n", id, shown_piece(tokenizer.bytes(id)));
    }
    return text;
}

}  // namespace

int model_tokenize(const ModelTokenizeOptions& options) {
    const auto tokenizer = gateway::load_tokenizer(options.model);
    if (!tokenizer) return fail(kCannotStart, tokenizer.error());
    std::string text = options.text;
    if (!options.text_file.empty()) {
        auto read = read_input(options.text_file, limits::kBodyBytes);
        if (!read) return fail(kCannotStart, read.error());
        text = *std::move(read);
    }
    std::vector<TokenId> ids;
    if (options.control) {
        ids = tokenizer->encode_with_control(text);
    } else {
        tokenizer->encode(text, ids);
    }
    print(options.pieces ? pieces_text(*tokenizer, ids)
                         : fmt::format("{{\"ids\":[{}]}}\n", fmt::join(ids, ",")));
    return kDone;
}

int model_detokenize(const ModelDetokenizeOptions& options) {
    const auto tokenizer = gateway::load_tokenizer(options.model);
    if (!tokenizer) return fail(kCannotStart, tokenizer.error());
    const auto ids = read_ids(options.ids);
    if (!ids) return fail(kWrongUse, ids.error());
    for (const TokenId id : *ids) {
        if (!tokenizer->bytes(id).empty()) continue;
        return fail(kFailed, fmt::format("the vocabulary of {} has no token {}",
                                         tokenizer->vocabulary_size(), id));
    }
    const std::string bytes = tokenizer->decode(*ids);
    if (!options.json) {
        print_bytes(bytes);
        return kDone;
    }
    print(boost::json::serialize(boost::json::value{{"text", text::replace_invalid_utf8(bytes)}}) +
          "\n");
    return kDone;
}

}  // namespace sluice::app
