#include "text/byte_pair_encoder.h"

#include <algorithm>
#include <random>

namespace sluice::text {
namespace {

struct Rule {
    TokenId left;
    TokenId right;
    TokenId result;
};

/// The definition: the rule of lowest rank that applies anywhere, at its leftmost place, again and
/// again.
std::vector<TokenId> merge_by_definition(std::vector<TokenId> ids, const std::vector<Rule>& rules) {
    while (true) {
        bool merged = false;
        for (const Rule& rule : rules) {
            const std::vector<TokenId> pair = {rule.left, rule.right};
            const auto at = std::search(ids.begin(), ids.end(), pair.begin(), pair.end());
            if (at == ids.end()) continue;
            *at = rule.result;
            ids.erase(at + 1);
            merged = true;
            break;
        }
        if (!merged) return ids;
    }
}

TEST(BytePairEncoderTest, ShortAndLongPiecesAreMergedAsTheDefinitionSays) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        BytePairEncoder encoder(24);
        for (int byte = 0; byte < 256; ++byte)
            encoder.set_byte(static_cast<std::uint8_t>(byte), byte);
        std::vector<Rule> rules;
        std::vector<TokenId> usable = {'a', 'b', 'c'};
        for (TokenId result = 256; result < 280; ++result) {
            const Rule rule{usable[random() % usable.size()], usable[random() % usable.size()],
                            result};
            if (!encoder.add_merge(rule.left, rule.right, rule.result)) continue;
            rules.push_back(rule);
            usable.push_back(result);
        }
        for (const std::size_t length : {1, 2, 5, 30, 48, 49, 60, 300}) {
            std::string piece;
            for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
            std::vector<TokenId> ids;
            encoder.encode(piece, ids);
            ASSERT_EQ(ids, merge_by_definition({piece.begin(), piece.end()}, rules)) << piece;
        }
    }
}

TEST(BytePairEncoderTest, APairHasOneRule) {
    BytePairEncoder encoder(2);
    EXPECT_TRUE(encoder.add_merge(1, 2, 3));
    EXPECT_FALSE(encoder.add_merge(1, 2, 4));
    EXPECT_TRUE(encoder.add_merge(2, 1, 4));
}

TEST(BytePairEncoderTest, AnEmptyPieceHasNoIds) {
    std::vector<TokenId> ids = {5};
    BytePairEncoder(0).encode("", ids);
    EXPECT_EQ(ids, std::vector<TokenId>{5});
}

}  // namespace
}  // namespace sluice::text
