#include "text/piece_table.h"

namespace sluice::text {
namespace {

TEST(PieceTableTest, EveryPieceIsFoundAndNothingElse) {
    std::vector<std::string> tokens;
    for (int i = 0; i < 5'000; ++i) tokens.push_back("piece" + std::to_string(i * 7));
    PieceTable table(tokens.size());
    for (TokenId id = 0; id < 5'000; ++id) ASSERT_EQ(table.add(tokens, id), PieceTable::kNone);
    for (TokenId id = 0; id < 5'000; ++id) {
        ASSERT_EQ(table.find(tokens, tokens[static_cast<std::size_t>(id)]), id);
    }
    EXPECT_EQ(table.find(tokens, "piece1"), PieceTable::kNone);
    EXPECT_EQ(table.find(tokens, ""), PieceTable::kNone);
}

TEST(PieceTableTest, TheFirstOfTwoEqualPiecesStays) {
    const std::vector<std::string> tokens = {"a", "b", "a"};
    PieceTable table(tokens.size());
    EXPECT_EQ(table.add(tokens, 0), PieceTable::kNone);
    EXPECT_EQ(table.add(tokens, 2), 0);
    EXPECT_EQ(table.find(tokens, "a"), 0);
}

}  // namespace
}  // namespace sluice::text
