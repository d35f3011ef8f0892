#include "gateway/model_vocabulary.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace sluice::gateway {
namespace {

namespace fs = std::filesystem;

const fs::path kKrill = fs::path(SLUICE_SOURCE_DIR) / "models/krill";

/// A folder of the test's own, empty at first and removed at the end.
class TemporaryFolder {
public:
    TemporaryFolder() : path_(testing::TempDir() + "sluice-XXXXXX") {
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~TemporaryFolder() { fs::remove_all(path_); }
    [[nodiscard]] fs::path write(const std::string& name, const std::string& content) const {
        const fs::path file = fs::path(path_) / name;
        std::ofstream(file) << content;
        return file;
    }
    [[nodiscard]] fs::path path() const { return path_; }

private:
    std::string path_;
};

TEST(ModelVocabularyTest, EveryFileOfAModelGivesTheSameTokenizer) {
    const auto json = load_tokenizer(kKrill / "tokenizer.json");
    ASSERT_TRUE(json) << json.error().to_string();
    for (const fs::path& path : {kKrill / "krill-f16.gguf", kKrill / "krill-q8_0.gguf",
                                 fs::path(std::string(kBuiltInModel))}) {
        const auto gguf = load_tokenizer(path);
        ASSERT_TRUE(gguf) << gguf.error().to_string();
        EXPECT_EQ(gguf->digest(), json->digest()) << path;
        EXPECT_EQ(gguf->control_id("<｜User｜>"), 4083);
        EXPECT_EQ(gguf->bos(), 0);
        EXPECT_EQ(gguf->eos(), 1);
    }
}

TEST(ModelVocabularyTest, ThePlaceOfAnErrorIsTheFile) {
    const TemporaryFolder folder;
    for (const std::string content : {"", "GGUF", "{\"model\":1}", "text"}) {
        const fs::path file = folder.write("bad", content);
        const auto tokenizer = load_tokenizer(file);
        ASSERT_FALSE(tokenizer) << content;
        EXPECT_TRUE(tokenizer.error().place().starts_with(file.string()))
            << tokenizer.error().to_string();
    }
}

TEST(ModelVocabularyTest, TheBuiltInModelIsFoundByItsName) {
    const auto path = find_model("krill");
    ASSERT_TRUE(path) << path.error().to_string();
    EXPECT_TRUE(fs::equivalent(*path, kKrill / "krill-q8_0.gguf"));
}

TEST(ModelVocabularyTest, APathIsItself) {
    EXPECT_EQ(*find_model((kKrill / "krill-f16.gguf").string()), kKrill / "krill-f16.gguf");
}

TEST(ModelVocabularyTest, SluiceModelsGoesFirst) {
    const TemporaryFolder folder;
    const fs::path file = folder.write("krill-q8_0.gguf", "GGUF");
    ::setenv("SLUICE_MODELS", folder.path().c_str(), 1);
    const auto path = find_model("krill");
    ::unsetenv("SLUICE_MODELS");
    EXPECT_EQ(*path, file);
}

TEST(ModelVocabularyTest, AMissingFileIsNotFoundAndAFolderIsNoModel) {
    EXPECT_EQ(find_model("/nowhere/model.gguf").error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(find_model("").error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(find_model(kKrill.string()).error().code(), ErrorCode::kInvalid);
}

TEST(ModelVocabularyTest, ADialectHasTwoSpellingsAndOthersAreRefused) {
    protocol::Conversation conversation;
    conversation.messages.push_back({.role = protocol::Role::kUser, .parts = {{.text = "Hi"}}});
    EXPECT_EQ(*render("v4.1", conversation), *render("deepseek-v4.1", conversation));
    for (const char* name : {"", "v3", "deepseek-v4"}) {
        EXPECT_EQ(render(name, conversation).error().code(), ErrorCode::kUnsupported) << name;
    }
}

}  // namespace
}  // namespace sluice::gateway
