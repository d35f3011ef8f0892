#include "gateway/token_pump.h"

#include "gateway/model_vocabulary.h"

namespace sluice::gateway {
namespace {

const text::Tokenizer& krill() {
    static const text::Tokenizer tokenizer = *load_tokenizer(*find_model("krill"));
    return tokenizer;
}

constexpr TokenId kEnd = 1;
constexpr TokenId kThinkEnd = 4086;

port::GenerateFrame frame(std::vector<TokenId> ids) {
    port::GenerateFrame frame;
    frame.output_ids = std::move(ids);
    frame.prompt_tokens = 10;
    frame.cached_tokens = 4;
    return frame;
}

port::GenerateFrame ending(std::vector<TokenId> ids, port::FinishType type,
                           std::optional<TokenId> matched = {}) {
    port::GenerateFrame last = frame(std::move(ids));
    last.finish_reason = {.type = type, .matched = matched, .message = {}};
    return last;
}

std::vector<TokenId> ids(std::string_view text) { return krill().encode_with_control(text); }

std::string text_of(const std::vector<Piece>& pieces, protocol::OutputKind kind) {
    std::string text;
    for (const Piece& piece : pieces)
        if (piece.event.kind == kind) text += piece.event.text;
    return text;
}

constexpr auto kContent = protocol::OutputKind::kContent;
constexpr auto kReasoning = protocol::OutputKind::kReasoning;

TEST(TokenPumpTest, TheStopTokenEndsTheAnswerAndIsNoPartOfIt) {
    TokenPump pump(krill(), {});
    std::vector<TokenId> tokens = ids("Paris.");
    tokens.push_back(kEnd);
    const auto pieces = pump.take(ending(tokens, port::FinishType::kStop, kEnd));
    EXPECT_EQ(text_of(pieces, kContent), "Paris.");
    EXPECT_EQ(pump.finished(), protocol::FinishReason::kStop);
    EXPECT_EQ(pump.usage().completion_tokens, tokens.size());
    EXPECT_EQ(pump.usage().cached_tokens, 4U);
}

TEST(TokenPumpTest, AStopStringEndsTheAnswerBeforeTheEngineDoes) {
    TokenPump pump(krill(), {.stop = {"is Par"}});
    const auto pieces = pump.take(frame(ids("The capital is Paris, said")));
    EXPECT_EQ(text_of(pieces, kContent), "The capital ");
    EXPECT_EQ(pump.finished(), protocol::FinishReason::kStop);
    EXPECT_TRUE(pump.take(frame(ids("more"))).empty());
    EXPECT_LT(pump.journal().size(), ids("The capital is Paris, said").size());
}

TEST(TokenPumpTest, ThinkingIsToldApartAndCounted) {
    TokenPump pump(krill(), {.start = protocol::OutputStart::kReasoning});
    std::vector<TokenId> tokens = ids("The user asks.");
    const std::size_t thinking = tokens.size();
    tokens.push_back(kThinkEnd);
    for (const TokenId token : ids("Tokyo.")) tokens.push_back(token);
    const auto pieces = pump.take(ending(tokens, port::FinishType::kLength));
    EXPECT_EQ(text_of(pieces, kReasoning), "The user asks.");
    EXPECT_EQ(text_of(pieces, kContent), "Tokyo.");
    EXPECT_EQ(pump.usage().reasoning_tokens, thinking + 1);  // The mark that ends it counts, too.
    EXPECT_EQ(pump.finished(), protocol::FinishReason::kLength);
}

TEST(TokenPumpTest, GuessesOfEveryLegAreCounted) {
    TokenPump pump(krill(), {});
    const auto take = [&pump](std::uint64_t drafted, std::uint64_t accepted) {
        port::GenerateFrame next = frame(ids("a"));
        next.drafted = drafted;
        next.accepted = accepted;
        (void)pump.take(next);
    };
    take(2, 1);
    take(5, 3);
    take(0, 0);  // Another worker goes on, and counts from zero.
    take(4, 4);
    EXPECT_EQ(pump.usage().drafted, 9U);
    EXPECT_EQ(pump.usage().accepted, 7U);
}

TEST(TokenPumpTest, ACharacterCutByTheEndBecomesAReplacementMark) {
    TokenPump pump(krill(), {});
    std::vector<TokenId> tokens;
    krill().encode("\xF0\x9F\x98\x80", tokens);  // U+1F600, which Krill spells byte by byte
    tokens.pop_back();
    const auto pieces = pump.take(ending(tokens, port::FinishType::kLength));
    EXPECT_EQ(text_of(pieces, kContent), "\xEF\xBF\xBD");
}

// However frames are cut, the client reads the same.
TEST(TokenPumpTest, FramesMayBeCutAnywhere) {
    const std::string text = "Once upon a time \xF0\x9F\x98\x80 there was a STOP sign";
    std::vector<TokenId> tokens;
    krill().encode(text, tokens);
    for (std::size_t size = 1; size <= tokens.size(); ++size) {
        TokenPump pump(krill(), {.stop = {"STOP"}});
        std::string read;
        for (std::size_t at = 0; at < tokens.size() && !pump.finished(); at += size) {
            const std::size_t end = std::min(at + size, tokens.size());
            read += text_of(pump.take(frame({tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                             tokens.begin() + static_cast<std::ptrdiff_t>(end)})),
                            kContent);
        }
        EXPECT_EQ(read, "Once upon a time \xF0\x9F\x98\x80 there was a ") << size;
        EXPECT_EQ(pump.finished(), protocol::FinishReason::kStop);
    }
}

TEST(TokenPumpTest, EachTokensLogprobGoesWithItsText) {
    TokenPump pump(krill(), {});
    port::GenerateFrame scored = frame(ids("Paris is"));
    for (const TokenId token : scored.output_ids)
        scored.output_logprobs.push_back({.chosen = {token, -0.5F}, .top = {{token, -0.5F}}});
    const auto pieces = pump.take(scored);
    std::size_t entries = 0;
    std::string spelled;
    for (const Piece& piece : pieces)
        for (const auto& position : piece.logprobs) {
            ++entries;
            spelled += position.chosen.bytes;
        }
    EXPECT_EQ(entries, scored.output_ids.size());
    EXPECT_EQ(spelled, "Paris is");
}

}  // namespace
}  // namespace sluice::gateway
