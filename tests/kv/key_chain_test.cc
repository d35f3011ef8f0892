#include "kv/key_chain.h"

#include <gtest/gtest.h>

namespace sluice::kv {
namespace {

const BlockKeyRoot kRoot{.fingerprint = "f",
                         .numerics_id = "n",
                         .component = "mla",
                         .layout = "l",
                         .dtype = "f32",
                         .block_tokens = 2,
                         .salt = {}};
const std::vector<TokenId> kTokens{1, 2, 3, 4, 5, 6, 7};

TEST(KeyChainTest, WithoutASaltOfItsOwnItIsTheChainOfItsRoot) {
    BlockKeyRoot root = kRoot;
    root.salt = "tenant";
    EXPECT_EQ(KeyChain(kRoot, {.shared = "tenant"}).keys(kTokens),
              chain_keys(root_key(root), kTokens, 2));
}

TEST(KeyChainTest, SharesWhatLiesBeforeTheOwnPartAndNothingBehind) {
    const auto keys = [](std::string own, std::size_t from) {
        return KeyChain(kRoot, {.shared = "t", .own = std::move(own), .own_from = from})
            .keys(kTokens);
    };
    const auto plain = keys("", 0);
    const auto anna = keys("anna", 4);
    const auto ben = keys("ben", 4);
    ASSERT_EQ(plain.size(), 3U);
    for (std::size_t block = 0; block < 2; ++block) {
        EXPECT_EQ(anna[block], plain[block]);
        EXPECT_EQ(ben[block], plain[block]);
    }
    EXPECT_NE(anna[2], ben[2]);
    EXPECT_NE(anna[2], plain[2]);
    // A block that only just reaches into it is no longer everybody's.
    EXPECT_NE(keys("anna", 3)[1], plain[1]);
    EXPECT_NE(keys("anna", 0)[0], plain[0]);
    EXPECT_EQ(keys("anna", 100), plain);
}

TEST(KeyChainTest, APartialBlockIsNamedByWhatIsInIt) {
    const KeyChain chain(kRoot, {.shared = "t", .own = "anna", .own_from = 5});
    const auto keys = chain.keys(kTokens);
    const std::span tokens(kTokens);
    EXPECT_EQ(chain.child(keys[1], 4, tokens.subspan(4, 1)),
              child_key(keys[1], tokens.subspan(4, 1)));
    EXPECT_NE(chain.child(keys[1], 4, tokens.subspan(4, 2)),
              child_key(keys[1], tokens.subspan(4, 2)));
}

}  // namespace
}  // namespace sluice::kv
