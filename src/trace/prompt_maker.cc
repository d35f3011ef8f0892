#include "trace/prompt_maker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trace/random.h"

namespace sluice::trace {
namespace {

constexpr auto kWords = std::to_array<std::string_view>(
    {"the",   "of",    "and",   "to",   "in",     "is",    "that", "for",  "it",     "was",
     "on",    "are",   "as",    "with", "they",   "be",    "at",   "one",  "have",   "this",
     "from",  "had",   "by",    "hot",  "word",   "but",   "what", "some", "we",     "can",
     "out",   "other", "were",  "all",  "there",  "when",  "up",   "use",  "your",   "how",
     "said",  "an",    "each",  "she",  "which",  "their", "time", "if",   "will",   "way",
     "about", "many",  "then",  "them", "write",  "would", "like", "so",   "these",  "her",
     "long",  "make",  "thing", "see",  "him",    "two",   "has",  "look", "more",   "day",
     "could", "go",    "come",  "did",  "number", "sound", "no",   "most", "people", "my",
     "over",  "know",  "water", "than", "call",   "first", "who",  "may",  "down",   "side",
     "been",  "now",   "find",  "any",  "new",    "work",  "part", "take", "get",    "place"});

/// Block ids and texts draw from different streams.
constexpr std::uint64_t kBlockSeed = 0x5DEECE66D5DEECE6;

void append_words(std::string& text, std::uint64_t seed, std::size_t count) {
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        if (!text.empty()) text += ' ';
        text += kWords[random.next() % kWords.size()];
    }
}

}  // namespace

PromptMaker PromptMaker::calibrated(std::size_t words, std::size_t tokens) {
    // Beyond these bounds it is the count of tokens that is wrong, not the text.
    return PromptMaker(std::clamp(
        static_cast<double>(words) / static_cast<double>(std::max<std::size_t>(tokens, 1)), 0.05,
        2.0));
}

std::string PromptMaker::prompt(const PlannedRequest& request) const {
    const auto in_words = [&](double tokens) {
        return static_cast<std::size_t>(std::lround(tokens * words_per_token_));
    };
    std::size_t left = std::max<std::size_t>(in_words(request.input_tokens), 1);
    std::string text;
    for (std::size_t i = 0; i < request.blocks.size() && left > 0; ++i) {
        const std::size_t count = std::min(left, in_words(kTraceBlockTokens));
        append_words(text, kBlockSeed ^ request.blocks[i], count);
        left -= count;
    }
    append_words(text, request.text_seed, left);
    return text;
}

std::string PromptMaker::words(std::uint64_t seed, std::size_t count) {
    std::string text;
    append_words(text, seed, count);
    return text;
}

}  // namespace sluice::trace
