// docs/reference/ is what the program says of itself, to the letter.

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/subprocess.h"
#include "tests/places.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;

using Pages = std::map<std::string, std::string>;

Pages read_pages(const fs::path& folder) {
    Pages pages;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::ostringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        pages[entry.path().filename()] = text.str();
    }
    return pages;
}

TEST(ReferenceTest, ThePagesAreWhatHelpPrints) {
    const fs::path root = kSourceDir;
    const fs::path fresh = fs::path(kBinaryDir) / "tests/reference";
    auto child = Subprocess::spawn({.argv = {(root / "tools/make_reference.sh").string(),
                                             std::string(kBinaryDir) + "/sluice", fresh.string()}});
    ASSERT_TRUE(child) << child.error().to_string();
    ASSERT_TRUE(child->wait(std::chrono::minutes(2))->ok());

    const Pages expected = read_pages(fresh);
    const Pages pages = read_pages(root / "docs/reference");
    EXPECT_GE(expected.size(), 2U);
    for (const auto& [name, text] : expected) {
        EXPECT_EQ(pages.contains(name) ? pages.at(name) : "", text)
            << "docs/reference/" << name << " is stale; run `make reference`";
    }
    EXPECT_EQ(pages.size(), expected.size()) << "a page too many; run `make reference`";
}

}  // namespace
}  // namespace sluice::app
