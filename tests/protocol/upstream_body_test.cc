#include "protocol/upstream_body.h"

#include <gtest/gtest.h>

namespace sluice::protocol {
namespace {

std::string edited(const std::string& body, const UpstreamBodyEdits& edits) {
    std::string whole;
    for (const UpstreamBodyPart& part : upstream_body(body, *read_outline(body), edits)) {
        // What is kept is not copied.
        EXPECT_TRUE(part.kept.empty() || (part.kept.data() >= body.data() &&
                                          part.kept.data() < body.data() + body.size()));
        whole.append(part.kept).append(part.put_in);
    }
    return whole;
}

TEST(UpstreamBodyTest, WithoutEditsEveryByteStays) {
    const std::string body = " {\"model\" : \"m\" ,\n \"x\":[1, 0.70],\"stream\":true} ";
    EXPECT_EQ(edited(body, {}), body);
    EXPECT_EQ(edited(body, {.model = "m"}), body);
}

TEST(UpstreamBodyTest, OnlyTheModelsNameChanges) {
    EXPECT_EQ(edited(R"({"a":1,"model": "m" ,"z":"model"})", {.model = "big \"m\""}),
              R"({"a":1,"model": "big \"m\"" ,"z":"model"})");
    EXPECT_EQ(edited(R"({"a":1})", {.model = "m"}), R"({"model":"m","a":1})");
    EXPECT_EQ(edited("{ }", {.model = "m"}), R"({"model":"m" })");
}

TEST(UpstreamBodyTest, UsageIsAskedForWhereverTheClientLeftIt) {
    const UpstreamBodyEdits usage{.include_usage = true};
    EXPECT_EQ(edited(R"({"stream":true})", usage),
              R"({"stream_options":{"include_usage":true},"stream":true})");
    EXPECT_EQ(edited(R"({"stream_options":null})", usage),
              R"({"stream_options":{"include_usage":true}})");
    EXPECT_EQ(edited(R"({"stream_options": { } })", usage),
              R"({"stream_options": {"include_usage":true } })");
    EXPECT_EQ(edited(R"({"stream_options":{"x":{"y":1}},"a":1})", usage),
              R"({"stream_options":{"include_usage":true,"x":{"y":1}},"a":1})");
    EXPECT_EQ(edited(R"({"stream_options":{"include_usage":false,"x":1}})", usage),
              R"({"stream_options":{"include_usage":true,"x":1}})");
    EXPECT_EQ(edited(R"({"stream_options":{"include_usage":null}})", usage),
              R"({"stream_options":{"include_usage":true}})");
    const std::string asked = R"({"stream_options":{"include_usage":true}})";
    EXPECT_EQ(edited(asked, usage), asked);
}

std::string salt_in(const std::string& body, std::string_view salt) {
    const std::string out = edited(body, {.cache_salt = salt});
    const auto outline = read_outline(out);
    EXPECT_TRUE(outline.has_value()) << out;
    const BodySpan& value = outline->cache_salt_value;
    return out.substr(value.begin, value.size);
}

TEST(UpstreamBodyTest, TheSaltIsTheTenantsWhateverTheClientSays) {
    const std::string acme = salt_in(R"({"a":1})", "acme");
    EXPECT_EQ(acme.size(), 34U) << "of one length, and without the tenant's name: " << acme;
    EXPECT_EQ(acme, salt_in(R"({"cache_salt":null,"a":1})", "acme"));
    EXPECT_NE(acme, salt_in("{}", "zenith"));
    // A client's own salt divides its tenant's cache further, and opens nobody else's.
    const std::string own = salt_in(R"({"cache_salt":"x"})", "acme");
    EXPECT_NE(own, acme);
    EXPECT_NE(own, salt_in(R"({"cache_salt":"y"})", "acme"));
    EXPECT_NE(own, salt_in(R"({"cache_salt":"x"})", "zenith"));
    EXPECT_NE(acme, salt_in("{\"cache_salt\":" + acme + "}", "zenith"));
    EXPECT_EQ(own, salt_in(R"({"cache\u005fsalt":"x"})", "acme")) << "however the key is written";
}

TEST(UpstreamBodyTest, TwoSaltsAreNoRequest) {
    EXPECT_FALSE(read_outline(R"({"cache_salt":"a","cache_salt":"b"})").has_value());
    EXPECT_FALSE(read_outline(R"({"cache_salt":["a"]})").has_value());
}

TEST(UpstreamBodyTest, AllEditsAreValidJsonTogether) {
    for (const char* body :
         {"{}", R"({"a":1})", R"({"model":"m","a":1})", R"({"stream_options":{},"model":"m"})",
          R"({"cache_salt":"c","model":"m"})"}) {
        const std::string out =
            edited(body, {.model = "new", .include_usage = true, .cache_salt = "s"});
        const auto outline = read_outline(out);
        ASSERT_TRUE(outline.has_value()) << out;
        EXPECT_EQ(outline->model, "new") << out;
        EXPECT_TRUE(outline->include_usage) << out;
        EXPECT_FALSE(outline->cache_salt_value.empty()) << out;
    }
}

}  // namespace
}  // namespace sluice::protocol
