#include "text/vocabulary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/limits.h"
#include "text/pipeline_check.h"

namespace sluice::text {
namespace {

namespace json = boost::json;

constexpr std::size_t kDepthMax = 32;

constexpr std::string_view kBosSpelling = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEosSpelling = "<｜end▁of▁sentence｜>";
constexpr std::string_view kPadSpelling = "<｜▁pad▁｜>";

std::unexpected<Error> fail(std::string place, std::string message) {
    return std::unexpected(Error::invalid(std::move(message), std::move(place)));
}

Result<json::value> parse_json(std::string_view text) {
    json::parse_options options;
    options.max_depth = kDepthMax;
    json::stream_parser parser(json::make_shared_resource<json::monotonic_resource>(), options);
    json::error_code error;
    const std::size_t read = parser.write_some(text.data(), text.size(), error);
    if (!error && read < text.size()) error = json::error::extra_data;
    if (!error) parser.finish(error);
    if (error) {
        const auto end = text.begin() + static_cast<std::ptrdiff_t>(read);
        return fail(fmt::format("line {}", 1 + std::count(text.begin(), end, '\n')),
                    fmt::format("not valid JSON: {}", error.message()));
    }
    return parser.release();
}

/// An id that can index a vocabulary of the size we allow.
Result<TokenId> token_id(const json::value& value) {
    json::error_code error;
    const bool whole = value.is_int64() || value.is_uint64();
    const auto id = whole ? value.to_number<std::int64_t>(error) : -1;
    if (!whole || error) return std::unexpected(Error::invalid("must be a whole number"));
    if (id < 0 || static_cast<std::uint64_t>(id) >= limits::kVocabularyTokens) {
        return std::unexpected(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("id {} is not in 0..{}", id, limits::kVocabularyTokens - 1)));
    }
    return static_cast<TokenId>(id);
}

Result<void> read_vocabulary(const json::object& vocabulary, VocabularyData& data) {
    for (const auto& [spelling, value] : vocabulary) {
        const auto place = [&] {
            return fmt::format("model.vocab[{}]", quoted_spelling(spelling));
        };
        const auto id = token_id(value);
        if (!id) return std::unexpected(id.error().within(place()));
        if (spelling.empty()) return fail(place(), "a token can't be empty");
        const auto index = static_cast<std::size_t>(*id);
        if (index >= data.tokens.size()) data.tokens.resize(index + 1);
        if (!data.tokens[index].empty()) {
            return fail(place(), fmt::format("id {} is {} already", *id,
                                             quoted_spelling(data.tokens[index])));
        }
        data.tokens[index] = spelling;
    }
    return {};
}

/// A merge is "left right" or, in newer files, ["left", "right"].
Result<std::string> read_merge(const json::value& value) {
    if (value.is_string()) return std::string(value.get_string());
    const json::array* parts = value.if_array();
    if (!parts || parts->size() != 2 || !(*parts)[0].is_string() || !(*parts)[1].is_string()) {
        return std::unexpected(Error::invalid("must be a string or an array of two strings"));
    }
    return fmt::format("{} {}", std::string_view((*parts)[0].get_string()),
                       std::string_view((*parts)[1].get_string()));
}

Result<void> read_model(const json::object& file, VocabularyData& data) {
    const json::value* value = file.if_contains("model");
    const json::object* model = value ? value->if_object() : nullptr;
    if (!model) return fail("model", "must be an object");
    if (auto checked = check_model(*model); !checked) return checked;

    const json::value* vocabulary = model->if_contains("vocab");
    if (!vocabulary || !vocabulary->is_object()) return fail("model.vocab", "must be an object");
    if (auto read = read_vocabulary(vocabulary->get_object(), data); !read) return read;

    const json::value* merges = model->if_contains("merges");
    if (!merges || !merges->is_array()) return fail("model.merges", "must be an array");
    data.merges.reserve(merges->get_array().size());
    for (const json::value& entry : merges->get_array()) {
        auto merge = read_merge(entry);
        if (!merge) {
            return std::unexpected(
                merge.error().within(fmt::format("model.merges[{}]", data.merges.size())));
        }
        data.merges.push_back(std::move(*merge));
    }
    return {};
}

Result<AddedToken> read_added_token(const json::value& value) {
    const json::object* entry = value.if_object();
    if (!entry) return std::unexpected(Error::invalid("must be an object"));

    const json::value* id_value = entry->if_contains("id");
    if (!id_value) return fail("id", "is missing");
    const auto id = token_id(*id_value);
    if (!id) return std::unexpected(id.error().within("id"));
    const json::value* content = entry->if_contains("content");
    if (!content || !content->is_string()) return fail("content", "must be a string");

    bool special = false;
    for (const std::string_view name : {"special", "single_word", "lstrip", "rstrip"}) {
        const json::value* flag = entry->if_contains(name);
        if (!flag) continue;
        if (!flag->is_bool()) return fail(std::string(name), "must be true or false");
        if (name == "special") {
            special = flag->get_bool();
        } else if (flag->get_bool()) {
            return std::unexpected(Error::unsupported("true is not supported", std::string(name)));
        }
    }
    return AddedToken{.id = *id, .content = std::string(content->get_string()), .special = special};
}

Result<void> read_added_tokens(const json::object& file, VocabularyData& data) {
    const json::value* value = file.if_contains("added_tokens");
    if (!value || value->is_null()) return {};
    if (!value->is_array()) return fail("added_tokens", "must be an array");
    for (const json::value& entry : value->get_array()) {
        auto token = read_added_token(entry);
        if (!token) {
            return std::unexpected(
                token.error().within(fmt::format("added_tokens[{}]", data.added.size())));
        }
        data.added.push_back(std::move(*token));
    }
    return {};
}

void find_named_tokens(VocabularyData& data) {
    for (const AddedToken& token : data.added) {
        if (token.content == kBosSpelling) data.bos = token.id;
        if (token.content == kEosSpelling) data.eos = token.id;
        if (token.content == kPadSpelling) data.pad = token.id;
    }
}

}  // namespace

Result<VocabularyData> parse_tokenizer_json(std::string_view text) {
    if (text.size() > limits::kTokenizerFileBytes) {
        return std::unexpected(Error(ErrorCode::kOutOfRange,
                                     fmt::format("the file has {} bytes; at most {} are allowed",
                                                 text.size(), limits::kTokenizerFileBytes)));
    }
    const auto parsed = parse_json(text);
    if (!parsed) return std::unexpected(parsed.error());
    const json::object* file = parsed->if_object();
    if (!file) return fail("line 1", "the file must hold one JSON object");

    VocabularyData data;
    if (auto checked = check_pipeline(*file); !checked) return std::unexpected(checked.error());
    if (auto read = read_model(*file, data); !read) return std::unexpected(read.error());
    if (auto read = read_added_tokens(*file, data); !read) return std::unexpected(read.error());
    find_named_tokens(data);
    return data;
}

}  // namespace sluice::text
