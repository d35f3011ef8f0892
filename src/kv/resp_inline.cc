#include "kv/resp_inline.h"

#include <array>
#include <charconv>
#include <utility>

namespace sluice::kv {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool is_blank(char c) { return kBlanks.contains(c); }

char unescaped(char c) {
    static constexpr std::array<std::pair<char, char>, 5> kEscapes{
        {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'a', '\a'}, {'b', '\b'}}};
    for (const auto& [name, meaning] : kEscapes)
        if (c == name) return meaning;
    return c;
}

/// What a backslash at the front of `rest` stands for; takes it.
char take_escape(std::string_view& rest) {
    if (rest.size() >= 4 && rest[1] == 'x') {
        unsigned value = 0;
        const auto [stop, error] = std::from_chars(rest.data() + 2, rest.data() + 4, value, 16);
        if (error == std::errc() && stop == rest.data() + 4) {
            rest.remove_prefix(4);
            return static_cast<char>(value);
        }
    }
    const char c = unescaped(rest[1]);
    rest.remove_prefix(2);
    return c;
}

/// The quoted rest of a word, the opening quote already taken. False if it doesn't end.
bool take_quoted(std::string_view& rest, char quote, std::string& word) {
    while (!rest.empty()) {
        const bool escape =
            rest[0] == '\\' && rest.size() > 1 && (quote == '"' || rest[1] == quote);
        if (escape && quote == '"') {
            word += take_escape(rest);
            continue;
        }
        if (escape) rest.remove_prefix(1);
        const char c = rest[0];
        rest.remove_prefix(1);
        if (c == quote && !escape) return rest.empty() || is_blank(rest[0]);
        word += c;
    }
    return false;
}

}  // namespace

Result<std::vector<std::string>> split_inline_command(std::string_view line) {
    std::vector<std::string> words;
    for (;;) {
        const std::size_t begin = line.find_first_not_of(kBlanks);
        if (begin == std::string_view::npos) return words;
        line.remove_prefix(begin);
        std::string& word = words.emplace_back();
        while (!line.empty() && !is_blank(line[0])) {
            const char c = line[0];
            line.remove_prefix(1);
            if (c != '"' && c != '\'') {
                word += c;
                continue;
            }
            if (take_quoted(line, c, word)) break;
            return std::unexpected(Error::invalid("unbalanced quotes in request"));
        }
    }
}

}  // namespace sluice::kv
