// The `tokenizers` library (npm tokenizers@0.23.2, in tests/oracle) and we give every text equal ids.

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/places.h"
#include "tests/text/fixtures.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

constexpr int kTexts = 20'000;
constexpr int kSeed = 20261130;

/// Reads what tests/oracle/tokenizer_oracle.mjs has written.
class OracleFile {
public:
    explicit OracleFile(std::string content) : content_(std::move(content)) {}

    std::uint32_t count() {
        std::uint32_t value = 0;
        std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
        return value;
    }
    std::string bytes() { return std::string(take(count())); }
    Ids ids() {
        Ids ids(count());
        const std::string_view raw = take(ids.size() * sizeof(TokenId));
        if (!ids.empty()) std::memcpy(ids.data(), raw.data(), raw.size());
        return ids;
    }
    [[nodiscard]] bool at_end() const { return position_ == content_.size(); }

private:
    std::string_view take(std::size_t size) {
        const std::string_view part = std::string_view(content_).substr(position_, size);
        if (part.size() != size) throw std::runtime_error("the oracle's file is too short");
        position_ += size;
        return part;
    }

    std::string content_;
    std::size_t position_ = 0;
};

fs::path oracle_folder() { return fs::path(sluice::kSourceDir) / "tests" / "oracle"; }

bool oracle_is_there() {
    return fs::exists(oracle_folder() / "node_modules" / "tokenizers") &&
           std::system("node --version > /dev/null 2>&1") == 0;
}

OracleFile ask_oracle(const fs::path& tokenizer_json) {
    const fs::path output =
        fs::path(testing::TempDir()) / ("sluice-oracle-" + std::to_string(getpid()) + ".bin");
    const std::string command = "node '" + (oracle_folder() / "tokenizer_oracle.mjs").string() +
                                "' '" + tokenizer_json.string() + "' '" + output.string() + "' " +
                                std::to_string(kTexts) + " " + std::to_string(kSeed);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    OracleFile file(read_file(output));
    fs::remove(output);
    return file;
}

void expect_equal(const Tokenizer& tokenizer, OracleFile oracle) {
    const std::uint32_t texts = oracle.count();
    ASSERT_EQ(texts, static_cast<std::uint32_t>(kTexts));
    for (std::uint32_t i = 0; i < texts; ++i) {
        const std::string text = oracle.bytes();
        Ids plain;
        tokenizer.encode(text, plain);
        ASSERT_EQ(plain, oracle.ids()) << "text " << i << ": " << testing::PrintToString(text);
        const Ids control = tokenizer.encode_with_control(text);
        ASSERT_EQ(control, oracle.ids()) << "text " << i << ": " << testing::PrintToString(text);
        ASSERT_EQ(tokenizer.decode(plain), text);
        ASSERT_EQ(tokenizer.decode(control), text);
    }
    for (std::uint32_t left = oracle.count(); left > 0; --left) {
        const Ids ids = oracle.ids();
        ASSERT_EQ(replace_invalid_utf8(tokenizer.decode(ids)), oracle.bytes());
    }
    EXPECT_TRUE(oracle.at_end());
}

TEST(OracleTest, DeepSeeksVocabularyGivesTheLibrarysIds) {
    const auto path = deepseek_tokenizer_file();
    if (!path || !oracle_is_there()) GTEST_SKIP() << "no oracle: npm ci in tests/oracle";
    expect_equal(tokenizer_from_json(*path), ask_oracle(*path));
}

TEST(OracleTest, KrillsVocabularyGivesTheLibrarysIds) {
    if (!oracle_is_there()) GTEST_SKIP() << "no oracle: npm ci in tests/oracle";
    const fs::path path = krill_file("tokenizer.json");
    expect_equal(tokenizer_from_json(path), ask_oracle(path));
}

}  // namespace
}  // namespace sluice::text
