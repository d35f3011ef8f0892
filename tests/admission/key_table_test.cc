#include "admission/key_table.h"

#include <gmock/gmock.h>

namespace sluice::admission {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr UnixTime kNow = 1'800'000'000;

std::array<std::uint8_t, kKeyEntropyBytes> entropy(std::uint8_t first) {
    std::array<std::uint8_t, kKeyEntropyBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
    return bytes;
}

TEST(KeyTableTest, AKeyOpensForItsTenantAndAnyChangedDigitDoesNot) {
    KeyTable table;
    const std::string text = *table.add({.tenant = "acme", .name = "ci"}, entropy(1), kNow);
    EXPECT_EQ(text.size(), 10U + 16 + 1 + 64);
    ASSERT_NE(table.authenticate(text, kNow), nullptr);
    EXPECT_EQ(table.authenticate(text, kNow)->tenant, "acme");
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string other = text;
        other[i] = other[i] == '0' ? '1' : '0';
        EXPECT_EQ(table.authenticate(other, kNow), nullptr) << i;
    }
    EXPECT_EQ(table.authenticate("", kNow), nullptr);
    EXPECT_EQ(table.authenticate(text + "0", kNow), nullptr);
}

TEST(KeyTableTest, TheDocumentHoldsNoSecretAndReadsBackAsTheSame) {
    KeyTable table;
    const std::string text =
        *table.add({.tenant = "acme", .name = "it's \"Ann\"", .admin = true, .expires = kNow + 5},
                   entropy(1), kNow);
    (void)*table.add({.tenant = "b"}, entropy(100), kNow);
    ASSERT_TRUE(table.revoke(table.keys()[1].id, kNow + 1));
    const std::string document = table.to_json();
    EXPECT_THAT(document, Not(HasSubstr(text.substr(text.size() - 64))));
    const auto again = KeyTable::parse(document);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(again->keys(), table.keys());
    EXPECT_NE(again->authenticate(text, kNow), nullptr);
}

TEST(KeyTableTest, AnExpiredKeyAndARevokedOneOpenNothing) {
    KeyTable table;
    const std::string text = *table.add({.tenant = "acme", .expires = kNow + 5}, entropy(1), kNow);
    EXPECT_NE(table.authenticate(text, kNow + 4), nullptr);
    EXPECT_EQ(table.authenticate(text, kNow + 5), nullptr);
    const std::string other = *table.add({.tenant = "acme"}, entropy(50), kNow);
    ASSERT_TRUE(table.revoke(table.keys()[1].id, kNow));
    ASSERT_TRUE(table.revoke(table.keys()[1].id, kNow + 9));
    EXPECT_EQ(table.keys()[1].revoked, kNow);
    EXPECT_EQ(table.authenticate(other, kNow), nullptr);
    EXPECT_FALSE(table.revoke("0123456789abcdef", kNow));
}

TEST(KeyTableTest, EqualSecretsOfTwoKeysHaveDifferentDigests) {
    auto one = entropy(1);
    auto two = one;
    two[0] ^= 1;  // Another id, the same secret.
    EXPECT_NE(key_digest(key_text(one)), key_digest(key_text(two)));
}

TEST(KeyTableTest, WhatCannotBeAKeyIsRefusedByItsField) {
    KeyTable table;
    EXPECT_EQ(table.add({.tenant = "A b"}, entropy(1), kNow).error().place(), "tenant");
    EXPECT_EQ(table.add({.tenant = "a", .name = "x\n"}, entropy(1), kNow).error().place(), "name");
    EXPECT_EQ(table.add({.tenant = "a", .expires = kNow}, entropy(1), kNow).error().place(),
              "expires");
    EXPECT_TRUE(table.keys().empty());
}

TEST(KeyTableTest, AMistakeInTheDocumentIsToldByItsPlace) {
    KeyTable table;
    (void)*table.add({.tenant = "acme"}, entropy(1), kNow);
    const std::string good = table.to_json();
    const auto place_after = [&](std::string_view from, std::string_view to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        const auto parsed = KeyTable::parse(text);
        return parsed ? std::string("good") : parsed.error().place();
    };
    EXPECT_EQ(place_after("\"acme\"", "7"), "keys[0].tenant");
    EXPECT_EQ(place_after("\"acme\"", "\"Acme\""), "keys[0].tenant");
    EXPECT_EQ(place_after("false", "0"), "keys[0].admin");
    EXPECT_EQ(place_after("\"revoked\":null", "\"revoked\":\"no\""), "keys[0].revoked");
    EXPECT_EQ(place_after("\"sha256\":\"", "\"sha256\":\"x"), "keys[0].sha256");
    EXPECT_EQ(place_after("\"admin\"", "\"adm\":1,\"admin\""), "keys[0]");
    EXPECT_EQ(place_after("\"version\":1", "\"version\":2"), "version");
    EXPECT_EQ(place_after("\"keys\":[", "\"keys\":[7,"), "keys[0]");
    std::string twice = good;
    const std::size_t open = twice.find('{', 1);
    const std::string row = twice.substr(open, twice.find('}') + 1 - open);
    twice.insert(open, row + ",");
    EXPECT_EQ(KeyTable::parse(twice).error().place(), "keys[1].id");
    EXPECT_FALSE(KeyTable::parse("[1]"));
    EXPECT_TRUE(KeyTable::parse("")->keys().empty());
}

}  // namespace
}  // namespace sluice::admission
