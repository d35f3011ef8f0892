#include "kv/block_key.h"

#include <set>

namespace sluice::kv {
namespace {

const BlockKeyRoot kRoot{.fingerprint = "f",
                         .numerics_id = "n",
                         .component = "mla",
                         .shard = 0,
                         .layout = "l",
                         .dtype = "f32",
                         .block_tokens = 64,
                         .salt = "s"};

TEST(BlockKeyTest, EveryPartOfTheRootChangesTheKey) {
    std::set<BlockKey> keys = {root_key(kRoot)};
    const auto differs = [&](auto change) {
        BlockKeyRoot root = kRoot;
        change(root);
        return keys.insert(root_key(root)).second;
    };
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.fingerprint = "g"; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.numerics_id = "m"; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.component = "mlb"; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.shard = 1; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.layout = "k"; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.dtype = "f16"; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.block_tokens = 32; }));
    EXPECT_TRUE(differs([](BlockKeyRoot& r) { r.salt = "t"; }));
}

TEST(BlockKeyTest, NeighbouringFieldsDoNotRunTogether) {
    BlockKeyRoot a = kRoot;
    BlockKeyRoot b = kRoot;
    a.fingerprint = "ab";
    a.numerics_id = "c";
    b.fingerprint = "a";
    b.numerics_id = "bc";
    EXPECT_NE(root_key(a), root_key(b));
}

TEST(BlockKeyTest, AChildDependsOnItsParentAndOnEachOfItsTokens) {
    const std::vector<TokenId> tokens = {1, 2, 3};
    const BlockKey root = root_key(kRoot);
    const BlockKey child = child_key(root, tokens);
    EXPECT_EQ(child, child_key(root, tokens));
    EXPECT_NE(child, child_key(child, tokens));
    EXPECT_NE(child, child_key(root, std::vector<TokenId>{1, 2}));
    EXPECT_NE(child, child_key(root, std::vector<TokenId>{1, 2, 259}));
}

TEST(BlockKeyTest, AChainNamesItsFullBlocks) {
    const BlockKey root = root_key(kRoot);
    const std::vector<TokenId> tokens = {1, 2, 3, 4, 5};
    const BlockKey first = child_key(root, std::vector<TokenId>{1, 2});
    EXPECT_EQ(chain_keys(root, tokens, 2),
              (std::vector<BlockKey>{first, child_key(first, std::vector<TokenId>{3, 4})}));
    EXPECT_TRUE(chain_keys(root, std::vector<TokenId>{1}, 2).empty());
}

// Keys outlive processes and travel between them, so a change of the scheme must be seen.
TEST(BlockKeyTest, TheSchemeIsPinned) {
    EXPECT_EQ(to_hex(child_key(root_key(kRoot), std::vector<TokenId>{1, 2, 3})),
              "2be2221bbb58f8d7a4e80ce9049caf26fa3cf7555f168a0a15b5cf40788cf598");
}

}  // namespace
}  // namespace sluice::kv
