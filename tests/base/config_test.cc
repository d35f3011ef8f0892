#include "base/config.h"

#include <gmock/gmock.h>

#include "base/limits.h"

namespace sluice::config {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Document parse(std::string_view text) {
    auto document = Document::parse(text, "test.toml");
    EXPECT_TRUE(document) << document.error().to_string();
    return *document;
}

TEST(ConfigTest, ValuesAreReadByTheirType) {
    Table root =
        parse("a = 'x'\nb = true\nc = 7\nd = 1.5\ne = '10m'\nf = '4KiB'\ng = 'auto'\n").root();
    EXPECT_EQ(root.text("a"), "x");
    EXPECT_EQ(root.boolean("b"), true);
    EXPECT_EQ(root.integer("c", {0, 10}), 7);
    EXPECT_EQ(root.number("c", 0), 7.0);
    EXPECT_EQ(root.number("d", 0), 1.5);
    EXPECT_EQ(root.duration("e"), milliseconds(600'000));
    EXPECT_EQ(root.bytes("f"), 4096U);
    EXPECT_EQ(root.integer_or("c", {0, 10}, "auto")->number, 7);
    EXPECT_EQ(root.integer_or("g", {0, 10}, "auto")->number, std::nullopt);
    EXPECT_EQ(root.text("absent"), std::nullopt);
}

TEST(ConfigTest, AWrongTypeIsNotedWithItsLine) {
    const Document document = parse("\n[gateway]\nlisten = 8080\n");
    EXPECT_EQ(document.root().table("gateway")->text("listen"), std::nullopt);
    ASSERT_EQ(document.errors().size(), 1U);
    EXPECT_EQ(document.errors()[0].to_string(),
              "test.toml:3: gateway.listen must be text, not a whole number");
}

TEST(ConfigTest, ANumberOutOfRangeNamesBothNumbers) {
    const Document document = parse("workers = 0\n");
    EXPECT_EQ(document.root().integer("workers", {1, 64}), std::nullopt);
    EXPECT_THAT(document.errors()[0].message(), HasSubstr("is 0, but must be from 1 to 64"));
}

TEST(ConfigTest, UnknownKeysAreNotedWithTheNearestKnownName) {
    const Document document = parse("workers = 1\nwokers = 2\ncolour = 3\n");
    Table root = document.root();
    EXPECT_EQ(root.integer("workers", {1, 64}), 1);
    root.finish();
    ASSERT_EQ(document.errors().size(), 2U);
    EXPECT_EQ(document.errors()[0].to_string(),
              "test.toml:2: unknown key 'wokers'; did you mean 'workers'?");
    EXPECT_EQ(document.errors()[1].to_string(), "test.toml:3: unknown key 'colour'");
}

TEST(ConfigTest, TextThatIsNotTomlNamesItsLine) {
    const auto document = Document::parse("a = 1\nb = = 2\n", "test.toml");
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().place(), "test.toml:2");
}

TEST(ConfigTest, ArraysOfTablesKeepTheirOrderAndPlaces) {
    const Document document = parse("[[pool]]\nname = 'a'\n[[pool]]\nname = 2\n");
    std::vector<Table> pools = document.root().tables("pool");
    ASSERT_EQ(pools.size(), 2U);
    EXPECT_EQ(pools[0].text("name"), "a");
    EXPECT_EQ(pools[1].text("name"), std::nullopt);
    EXPECT_THAT(document.errors()[0].to_string(), HasSubstr("test.toml:4: pool[1].name must be"));
}

TEST(ConfigTest, AKeyOfManyLevelsIsRefusedBeforeItNests) {
    std::string key = "a";
    for (int i = 0; i < 1'000'000; ++i) key += ".a";
    EXPECT_FALSE(Document::parse(key + " = 1", "test.toml"));
    EXPECT_FALSE(Document::parse("[" + key + "]", "test.toml"));
    EXPECT_FALSE(Document::parse("a = " + std::string(100'000, '['), "test.toml"));
}

TEST(ConfigTest, CharactersThatTheParserCannotTakeAreRefusedBeforeIt) {
    EXPECT_FALSE(Document::parse("\xEF\xBB\xBB\"", "test.toml"));
    EXPECT_FALSE(Document::parse("a = \"\uFEFF\"", "test.toml"));
    EXPECT_FALSE(Document::parse("a = \"\uFEA0\"", "test.toml"));
    EXPECT_FALSE(Document::parse("\u00FE", "test.toml"));
    EXPECT_TRUE(Document::parse("\uFEFF# Windows\na = \"\uFE9F\uFF00\"", "test.toml"));
}

TEST(ConfigTest, ErrorsAndFileSizeAreBounded) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "key" + std::to_string(i) + " = 1\n";
    const Document document = parse(text);
    document.root().finish();
    EXPECT_EQ(document.errors().size(), limits::kConfigErrors);
    EXPECT_FALSE(Document::parse(std::string(limits::kConfigFileBytes + 1, '\n'), "test.toml"));
}

TEST(ConfigTest, AFileThatIsNotThereOrIsAFolderIsAnIoError) {
    for (const char* path : {"/nowhere/sluice.toml", "/"}) {
        const auto document = Document::load(path);
        ASSERT_FALSE(document) << path;
        EXPECT_EQ(document.error().code(), ErrorCode::kIo) << path;
        EXPECT_EQ(document.error().place(), path);
    }
}

}  // namespace
}  // namespace sluice::config
