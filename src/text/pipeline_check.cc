#include "text/pipeline_check.h"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "text/utf8.h"
#include "text/vocabulary.h"

namespace sluice::text {
namespace {

namespace json = boost::json;

/// The three expressions of DeepSeek V3's file, letter by letter once `unescaped`.
constexpr std::array<std::string_view, 3> kPatterns = {
    R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};

std::unexpected<Error> differs(std::string place, std::string message) {
    return std::unexpected(Error::unsupported(std::move(message), std::move(place)));
}

bool is_string(const json::object& object, std::string_view key, std::string_view expected) {
    const json::value* value = object.if_contains(key);
    return value && value->is_string() && std::string_view(value->get_string()) == expected;
}

bool is_bool(const json::object& object, std::string_view key, bool expected) {
    const json::value* value = object.if_contains(key);
    return value && value->is_bool() && value->get_bool() == expected;
}

bool is_absent(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return !value || value->is_null();
}

/// Files write the same expression with or without escapes; only those that don't change its
/// meaning are undone: \r, \n, \uXXXX and \".
std::string unescaped(std::string_view pattern) {
    std::string text;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '\\' || at + 1 == pattern.size()) {
            text += pattern[at];
            continue;
        }
        const char escape = pattern[++at];
        constexpr std::string_view kHex = "0123456789abcdefABCDEF";
        const std::string_view digits = pattern.substr(at + 1, 4);
        if (escape == 'r') {
            text += '\r';
        } else if (escape == 'n') {
            text += '\n';
        } else if (escape == '"') {
            text += '"';
        } else if (escape == 'u' && digits.size() == 4 &&
                   digits.find_first_not_of(kHex) == std::string_view::npos) {
            append_utf8(text, static_cast<char32_t>(std::stoul(std::string(digits), nullptr, 16)));
            at += 4;
        } else {
            text += '\\';
            text += escape;
        }
    }
    return text;
}

Result<void> check_split(const json::value& value, std::string_view pattern) {
    const json::object* split = value.if_object();
    if (!split || !is_string(*split, "type", "Split")) {
        return differs("type", "must be \"Split\", as in DeepSeek V3's file");
    }
    const json::value* holder = split->if_contains("pattern");
    const json::object* regex = holder ? holder->if_object() : nullptr;
    const json::value* found = regex ? regex->if_contains("Regex") : nullptr;
    if (!found || !found->is_string() || unescaped(found->get_string()) != pattern) {
        return differs("pattern.Regex", "is not the expression of DeepSeek V3's file");
    }
    if (!is_string(*split, "behavior", "Isolated")) {
        return differs("behavior", "must be \"Isolated\"");
    }
    if (!is_absent(*split, "invert") && !is_bool(*split, "invert", false)) {
        return differs("invert", "must be false");
    }
    return {};
}

Result<void> check_byte_level(const json::value& value) {
    const json::object* stage = value.if_object();
    if (!stage || !is_string(*stage, "type", "ByteLevel")) {
        return differs("type", "must be \"ByteLevel\"");
    }
    for (const std::string_view flag : {"add_prefix_space", "use_regex"}) {
        if (!is_bool(*stage, flag, false)) return differs(std::string(flag), "must be false");
    }
    return {};
}

Result<void> check_pre_tokenizer(const json::object& file) {
    const json::value* value = file.if_contains("pre_tokenizer");
    const json::object* sequence = value ? value->if_object() : nullptr;
    if (!sequence || !is_string(*sequence, "type", "Sequence")) {
        return differs("pre_tokenizer.type", "must be \"Sequence\", as in DeepSeek V3's file");
    }
    const std::string place = "pre_tokenizer.pretokenizers";
    const json::value* list = sequence->if_contains("pretokenizers");
    const json::array* stages = list ? list->if_array() : nullptr;
    if (!stages || stages->size() != kPatterns.size() + 1) {
        return differs(place, fmt::format("must be a list of {} stages", kPatterns.size() + 1));
    }
    for (std::size_t i = 0; i < stages->size(); ++i) {
        const json::value& stage = (*stages)[i];
        auto checked =
            i < kPatterns.size() ? check_split(stage, kPatterns[i]) : check_byte_level(stage);
        if (!checked) {
            return std::unexpected(checked.error().within(fmt::format("{}[{}]", place, i)));
        }
    }
    return {};
}

Result<void> check_normalizer(const json::object& file) {
    if (is_absent(file, "normalizer")) return {};
    const json::object* normalizer = file.at("normalizer").if_object();
    const json::value* list = normalizer && is_string(*normalizer, "type", "Sequence")
                                  ? normalizer->if_contains("normalizers")
                                  : nullptr;
    if (!list || !list->is_array() || !list->get_array().empty()) {
        return differs("normalizer", "must be null or an empty sequence");
    }
    return {};
}

}  // namespace

Result<void> check_pipeline(const json::object& file) {
    for (const std::string_view key : {"truncation", "padding"}) {
        if (!is_absent(file, key)) return differs(std::string(key), "must be null");
    }
    if (auto checked = check_normalizer(file); !checked) return checked;
    if (auto checked = check_pre_tokenizer(file); !checked) return checked;

    const json::value* decoder = file.if_contains("decoder");
    if (!decoder || !decoder->is_object() ||
        !is_string(decoder->get_object(), "type", "ByteLevel")) {
        return differs("decoder.type", "must be \"ByteLevel\"");
    }
    return {};
}

Result<void> check_model(const json::object& model) {
    if (!is_string(model, "type", "BPE")) return differs("model.type", "must be \"BPE\"");
    for (const std::string_view key : {"dropout", "unk_token"}) {
        if (!is_absent(model, key)) return differs(fmt::format("model.{}", key), "must be null");
    }
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        if (!is_absent(model, key) && !is_string(model, key, "")) {
            return differs(fmt::format("model.{}", key), "must be null or empty");
        }
    }
    for (const std::string_view key : {"byte_fallback", "ignore_merges"}) {
        if (!is_absent(model, key) && !is_bool(model, key, false)) {
            return differs(fmt::format("model.{}", key), "must be false");
        }
    }
    return {};
}

}  // namespace sluice::text
