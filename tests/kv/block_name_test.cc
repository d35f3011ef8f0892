#include "kv/block_name.h"

#include <gtest/gtest.h>

namespace sluice::kv {
namespace {

const BlockKey kKey = sha256("a block");

TEST(BlockNameTest, IsWrittenAsOthersReadIt) {
    EXPECT_EQ(to_wire({.tenant = "acme", .retention = Retention::kAgent, .key = kKey}),
              "kv:acme:agent:" + to_hex(kKey));
}

TEST(BlockNameTest, AnyTenantComesBackAsItWas) {
    for (const char* tenant : {"", "acme", "a:b", "%41", "é 😀", "a\r\nb"}) {
        const BlockName name{.tenant = tenant, .retention = Retention::kChat, .key = kKey};
        EXPECT_EQ(parse_block_name(to_wire(name)), name) << tenant;
    }
    EXPECT_NE(to_wire({.tenant = "a:b"}), to_wire({.tenant = "a%3Ab"}));
}

TEST(BlockNameTest, AnythingElseIsNoName) {
    const std::string hex = to_hex(kKey);
    for (const std::string& other :
         {std::string(), std::string("kv:"), "kv:a:chat:" + hex.substr(1), "kv:a:chat:" + hex + "0",
          "kv:a:chats:" + hex, "kv:a:b:chat:" + hex, "kv:a%:chat:" + hex, "kv:a%4:chat:" + hex,
          "kv:%41:chat:" + hex, "kv:%3a:chat:" + hex, "KV:a:chat:" + hex, "key:" + hex})
        EXPECT_FALSE(parse_block_name(other)) << other;
}

}  // namespace
}  // namespace sluice::kv
