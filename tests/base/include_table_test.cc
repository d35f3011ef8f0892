// docs/folders.md is a contract; this test is what makes it one.

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/places.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string>;
using IncludeTable = std::map<std::string, Folders>;  ///< Folder to the folders it may include.

std::string read(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Rows are "| `name/` | what it holds | folders it may include |"; "-" is none, "all" is all.
IncludeTable parse_table(const std::string& markdown) {
    static const std::regex kRow(R"(\| `([a-z]+)/` \|[^|]*\| ([a-z -]+) \|)");
    IncludeTable table;
    Folders open;
    for (std::sregex_iterator row(markdown.begin(), markdown.end(), kRow), end; row != end; ++row) {
        std::istringstream names((*row)[2]);
        Folders& allowed = table[(*row)[1]];
        for (std::string name; names >> name;) {
            if (name == "all") open.insert((*row)[1]);
            if (name != "-" && name != "all") allowed.insert(name);
        }
    }
    for (const std::string& folder : open) {
        for (const auto& [name, unused] : table) table[folder].insert(name);
    }
    return table;
}

/// What `source`, a file of `folder`, includes against the table; empty if nothing.
std::vector<std::string> violations(const IncludeTable& table, const std::string& folder,
                                    const std::string& source) {
    static const std::regex kInclude(R"re(^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">])re",
                                     std::regex::multiline);
    std::vector<std::string> found;
    const auto row = table.find(folder);
    if (row == table.end()) return {"folder " + folder + "/ is not in docs/folders.md"};
    for (std::sregex_iterator it(source.begin(), source.end(), kInclude), end; it != end; ++it) {
        const std::string path = (*it)[2];
        if ((*it)[1] == "<") {
            const bool sockets = path.starts_with("boost/asio") || path.starts_with("boost/beast");
            if (sockets && folder != "net") found.push_back("<" + path + "> outside net/");
            continue;
        }
        const std::string other = path.substr(0, path.find('/'));
        if (path.find('/') == std::string::npos || !table.contains(other)) {
            found.push_back("\"" + path + "\" names no folder of docs/folders.md");
        } else if (other != folder && !row->second.contains(other)) {
            found.push_back(folder + "/ may not include \"" + path + "\"");
        }
    }
    return found;
}

class IncludeTableTest : public testing::Test {
protected:
    const fs::path root_ = kSourceDir;
    const IncludeTable table_ = parse_table(read(root_ / "docs/folders.md"));
};

TEST_F(IncludeTableTest, TheTableIsRead) {
    ASSERT_GE(table_.size(), 20U);
    EXPECT_TRUE(table_.at("base").empty());
    EXPECT_EQ(table_.at("kvnode"), (Folders{"port", "kv", "net", "base"}));
    EXPECT_EQ(table_.at("app").size(), table_.size());
}

TEST_F(IncludeTableTest, TheTableNamesOnlyItsOwnFolders) {
    for (const auto& [folder, allowed] : table_) {
        for (const std::string& name : allowed) {
            EXPECT_TRUE(table_.contains(name)) << folder << "/ may include " << name << "/?";
        }
    }
}

TEST_F(IncludeTableTest, NoFileIncludesAgainstTheTable) {
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "src")) {
        const fs::path path = fs::relative(entry.path(), root_ / "src");
        const std::string extension = path.extension().string();
        if (extension != ".cc" && extension != ".h") continue;
        ++files;
        for (const std::string& text :
             violations(table_, path.begin()->string(), read(entry.path()))) {
            ADD_FAILURE() << "src/" << path.string() << ": " << text;
        }
    }
    EXPECT_GT(files, 10U);
}

TEST_F(IncludeTableTest, CMakeLinksNoFolderThatTheTableForbids) {
    static const std::regex kCall(R"(sluice_folder\(([a-z]+)([^)]*)\))");
    const std::string cmake = read(root_ / "src/CMakeLists.txt");
    std::size_t calls = 0;
    for (std::sregex_iterator call(cmake.begin(), cmake.end(), kCall), end; call != end; ++call) {
        ++calls;
        const std::string folder = (*call)[1];
        ASSERT_TRUE(table_.contains(folder)) << folder;
        std::istringstream words((*call)[2]);
        bool includes = false;
        for (std::string word; words >> word;) {
            if (word == "INCLUDES" || word == "LIBRARIES") {
                includes = word == "INCLUDES";
            } else if (includes) {
                EXPECT_TRUE(table_.at(folder).contains(word)) << folder << " INCLUDES " << word;
            }
        }
    }
    EXPECT_GT(calls, 0U);
}

// The inverse control: a check that finds nothing may be a check that looks at nothing.
TEST_F(IncludeTableTest, EachKindOfViolationIsFound) {
    const auto found = [&](const std::string& folder, const std::string& source) {
        return violations(table_, folder, source).size();
    };
    EXPECT_EQ(found("kv", "#include \"base/hash.h\"\n#include <vector>\n"), 0U);
    EXPECT_EQ(found("net", "#include <boost/asio/ip/tcp.hpp>\n"), 0U);
    EXPECT_EQ(found("kv", "// why\n#include \"net/sse.h\"\n"), 1U);
    EXPECT_EQ(found("base", "  #  include \"kv/block_key.h\"\n"), 1U);
    EXPECT_EQ(found("gateway", "#include <boost/beast/http.hpp>\n#include <boost/asio.hpp>\n"), 2U);
    EXPECT_EQ(found("kv", "#include \"block_key.h\"\n#include \"nowhere/x.h\"\n"), 2U);
    EXPECT_EQ(found("nowhere", ""), 1U);
}

}  // namespace
}  // namespace sluice
