#include "protocol/request_outline.h"

#include <gtest/gtest.h>

namespace sluice::protocol {
namespace {

RequestOutline outline(const std::string& body) {
    auto read = read_outline(body);
    EXPECT_TRUE(read.has_value()) << body << ": " << read.error().to_string();
    return read.value_or(RequestOutline{});
}

std::string text_of(const std::string& body, const BodySpan& span) {
    return body.substr(span.begin, span.size);
}

TEST(RequestOutlineTest, ReadsWhatTheGatewayNeeds) {
    const std::string body =
        R"( {"messages":[{"role":"user","content":"Hi"}],"stream" : true , "model":"a\"b" ,)"
        R"("stream_options": {"x":[1],"include_usage":true} ,"max_tokens":7,"user":"u",)"
        R"("prompt_cache_key":"k","other":{"deep":[[]]}})";
    const RequestOutline read = outline(body);
    EXPECT_EQ(read.model, "a\"b");
    EXPECT_TRUE(read.stream);
    EXPECT_TRUE(read.include_usage);
    EXPECT_EQ(read.max_tokens, 7U);
    EXPECT_EQ(read.user, "u");
    EXPECT_EQ(read.prompt_cache_key, "k");
    EXPECT_EQ(text_of(body, read.model_value), R"("a\"b")");
    EXPECT_EQ(text_of(body, read.stream_options_value), R"({"x":[1],"include_usage":true})");
    EXPECT_EQ(read.after_brace, 2U);
    EXPECT_FALSE(read.empty_object);
    EXPECT_EQ(read.kind, RequestKind::kText);
}

TEST(RequestOutlineTest, NullsAreAbsent) {
    const RequestOutline read =
        outline(R"({"model":null,"stream":null,"stream_options":null,"messages":null,"seed":null,)"
                R"("tools":null,"response_format":null,"user":null,"max_tokens":null})");
    EXPECT_TRUE(read.model.empty());
    EXPECT_FALSE(read.stream);
    EXPECT_FALSE(read.include_usage);
    EXPECT_EQ(read.kind, RequestKind::kText);
    EXPECT_TRUE(outline("{}").empty_object);
}

TEST(RequestOutlineTest, KindsTakeTheLastThatApplies) {
    EXPECT_EQ(outline(R"({"seed":1})").kind, RequestKind::kSeeded);
    EXPECT_EQ(
        outline(R"({"seed":1,"response_format":{"json_schema":{},"type":"json_schema"}})").kind,
        RequestKind::kJsonSchema);
    EXPECT_EQ(outline(R"({"response_format":{"type":"text"}})").kind, RequestKind::kText);
    EXPECT_EQ(
        outline(R"({"tools":[{"type":"function"}],"response_format":{"type":"json_object"}})").kind,
        RequestKind::kTools);
    EXPECT_EQ(outline(R"({"tools":[]})").kind, RequestKind::kText);
}

TEST(RequestOutlineTest, EqualSchemasHaveEqualDigests) {
    const auto digest = [](const std::string& fields) { return outline(fields).schema_digest; };
    const auto schema = [&](const std::string& name, const std::string& text) {
        return digest(R"({"response_format":{"type":"json_schema","json_schema":{"name":")" + name +
                      R"(","schema":)" + text + "}}}");
    };
    const std::string first = schema("a", R"({"type":"object"})");
    EXPECT_EQ(first.size(), 32U);
    EXPECT_EQ(schema("b", R"({"type":"object"} )"), first) << "whatever it is called";
    EXPECT_NE(schema("a", R"({"type":"array"})"), first);

    const std::string tools = digest(R"({"tools":[{"type":"function"}]})");
    EXPECT_EQ(tools.size(), 32U);
    EXPECT_NE(digest(R"({"tools":[{"type":"function","function":{}}]})"), tools);
    EXPECT_NE(digest(R"({"structured_outputs":{"regex":"a"}})"),
              digest(R"({"structured_outputs":{"regex":"b"}})"));
    for (const char* without :
         {"{}", R"({"tools":[ ]})", R"({"response_format":{"type":"json_object"}})",
          R"({"response_format":{"type":"json_schema","json_schema":null}})",
          R"({"response_format":{"type":"json_schema","json_schema":{"schema":7}}})",
          R"({"structured_outputs":null})"})
        EXPECT_EQ(digest(without), "") << without;
}

TEST(RequestOutlineTest, WhatIsNotAnObjectOfJsonIsRefused) {
    for (const char* body : {"", "   ", "[]", "7", "{", R"({"model":"a")", R"({"model":7})",
                             R"({"model":"a","model":"b"})", R"({"stream":"yes"})",
                             R"({"stream_options":3})", "{} {}", "{\"model\":\"\xff\"}"}) {
        EXPECT_FALSE(read_outline(body).has_value()) << body;
    }
}

TEST(RequestOutlineTest, WhatTheEngineKnowsBetterIsLeftToIt) {
    for (const char* body : {R"({"messages":{}})", R"({"messages":[3]})", R"({"user":{}})",
                             R"({"messages":[{"role":3},{"role":"user","content":{}}]})",
                             R"({"max_tokens":"many","tools":{},"response_format":[]})"}) {
        EXPECT_TRUE(read_outline(body).has_value()) << body;
    }
}

TEST(RequestOutlineTest, TheSameConversationHasTheSameKey) {
    const std::string first = R"({"messages":[{"role":"system","content":"S"},)"
                              R"({"role":"user","content":"A"}]})";
    const std::string later = R"({"temperature":1,"messages":[{"content":"S","role":"system"},)"
                              R"({"role":"user","content":"A"},{"role":"assistant","content":"B"},)"
                              R"({"role":"user","content":"C"}]})";
    const std::string other = R"({"messages":[{"role":"user","content":"A"}]})";
    EXPECT_EQ(conversation_key(outline(first), "", "t"), conversation_key(outline(later), "", "t"));
    EXPECT_NE(conversation_key(outline(first), "", "t"), conversation_key(outline(other), "", "t"));
    EXPECT_NE(conversation_key(outline(first), "", "t"), conversation_key(outline(first), "", "u"));
}

TEST(RequestOutlineTest, ANamedConversationKeepsItsName) {
    const RequestOutline read = outline(R"({"user":"u","prompt_cache_key":"k"})");
    EXPECT_EQ(conversation_key(read, "h", "t"), "header:h");
    EXPECT_EQ(conversation_key(read, "", "t"), "cache:k");
    EXPECT_EQ(conversation_key(outline(R"({"user":"u"})"), "", "t"), "user:u");
}

TEST(RequestOutlineTest, PartsCountAsTextToo) {
    const std::string a =
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"A"}]}]})";
    const std::string b =
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"B"}]}]})";
    EXPECT_NE(conversation_key(outline(a), "", ""), conversation_key(outline(b), "", ""));
    EXPECT_NE(conversation_key(outline(R"({"prompt":[1,2]})"), "", ""),
              conversation_key(outline(R"({"prompt":[1,3]})"), "", ""));
    EXPECT_NE(conversation_key(outline(R"({"prompt":"a"})"), "", ""),
              conversation_key(outline(R"({"prompt":"b"})"), "", ""));
}

}  // namespace
}  // namespace sluice::protocol
