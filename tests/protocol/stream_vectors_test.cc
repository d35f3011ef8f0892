// The parser against DeepSeek's own layer, on outputs of text and thinking.

#include <gtest/gtest.h>

#include "protocol/control_tokens.h"
#include "protocol/output_parser.h"
#include "tests/protocol/vectors.h"

namespace sluice::protocol {
namespace {

namespace json = boost::json;

/// Tools and JSON modes come later.
bool is_in_scope(const json::value& body, const json::value& chat) {
    return field(body, "tools").is_null() && field(body, "response_format").is_null() &&
           field(field(field(chat, "final"), "message"), "tool_calls").is_null();
}

/// There `<think>` stays in the text (facts: "not eaten"); here it opens thinking.
bool differs_on_purpose(std::string_view text) { return text.starts_with(control::kThinkBegin); }

ParseOptions options_of(const json::value& body) {
    ParseOptions options;
    const bool thinking = field(field(body, "thinking"), "type") == "enabled";
    options.start = thinking ? OutputStart::kReasoning : OutputStart::kContent;
    const json::value& stop = field(body, "stop");
    if (!stop.is_array()) return options;
    for (const json::value& text : stop.get_array()) options.stop.push_back(text_of(text));
    return options;
}

TEST(StreamVectorsTest, ThinkingAndTextAreWhatDeepSeeksLayerFolds) {
    const auto vectors = load_vectors("recipe_stream_vectors.json");
    if (!vectors) GTEST_SKIP() << "test vectors are not here; set SLUICE_DATA to their folder";
    int equal = 0;
    int different = 0;
    for (const json::value& row : field(*vectors, "cases").as_array()) {
        const json::value& chat = field(field(row, "r"), "chat");
        if (!chat.is_object()) continue;
        const auto index = static_cast<std::size_t>(field(chat, "b").as_int64());
        const json::value& body = field(*vectors, "bodies").as_array()[index];
        if (!is_in_scope(body, chat)) continue;
        const std::string text = text_of(field(row, "text"));
        if (differs_on_purpose(text)) {
            ++different;
            continue;
        }
        for (const std::size_t size : {text.size() + 1, std::size_t{1}}) {
            OutputParser parser(options_of(body));
            std::string content;
            std::string reasoning;
            const auto add = [&](const std::vector<OutputEvent>& events) {
                for (const OutputEvent& event : events) {
                    (event.kind == OutputKind::kContent ? content : reasoning) += event.text;
                }
            };
            for (std::size_t at = 0; at < text.size(); at += size)
                add(parser.push(text.substr(at, size)));
            add(parser.finish());
            const json::value& message = field(field(chat, "final"), "message");
            EXPECT_EQ(content, text_of(field(message, "content"))) << text_of(field(row, "n"));
            EXPECT_EQ(reasoning, text_of(field(message, "reasoning_content")))
                << text_of(field(row, "n"));
        }
        ++equal;
    }
    std::printf("%d outputs equal, %d differ on purpose\n", equal, different);
    EXPECT_GT(equal, 30);
}

}  // namespace
}  // namespace sluice::protocol
