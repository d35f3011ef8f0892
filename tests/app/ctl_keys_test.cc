// `sluice ctl keys` on files of the test's own.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <chrono>
#include <fstream>
#include <sstream>

#include "admission/key_table.h"
#include "app/command.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

class CtlKeysTest : public testing::Test {
protected:
    [[nodiscard]] Outcome keys(std::vector<std::string> words) const {
        words.insert(words.begin(), {"ctl", "keys"});
        words.insert(words.end(), {"--state", state()});
        return run_sluice(words);
    }
    [[nodiscard]] std::string state() const { return folder_.path() + "/a/state"; }
    [[nodiscard]] std::string file() const { return state() + "/keys.json"; }

    TemporaryFolder folder_;
};

TEST_F(CtlKeysTest, AKeyIsPrintedOnceAndOpensUntilItIsRevoked) {
    const Outcome added = keys({"add", "--tenant", "acme", "--name", "ci"});
    ASSERT_EQ(added.code, kDone) << added.err;
    const std::string text = added.out.substr(0, added.out.size() - 1);
    ASSERT_TRUE(admission::key_id(text)) << text;
    const std::string id(*admission::key_id(text));

    struct stat at{};
    ASSERT_EQ(::stat(file().c_str(), &at), 0);
    EXPECT_EQ(at.st_mode & 0777U, 0600U);
    EXPECT_NE(admission::KeyTable::parse(content(file()))->authenticate(text, now()), nullptr);
    const std::string secret = text.substr(text.rfind('-') + 1);
    EXPECT_THAT(content(file()), Not(HasSubstr(secret)));

    const Outcome listed = keys({"list"});
    EXPECT_THAT(listed.out, HasSubstr(id));
    EXPECT_THAT(listed.out, HasSubstr("acme"));
    EXPECT_THAT(listed.out + added.err + listed.err, Not(HasSubstr(secret)));

    ASSERT_EQ(keys({"revoke", id}).code, kDone);
    EXPECT_EQ(admission::KeyTable::parse(content(file()))->authenticate(text, now()), nullptr);
    EXPECT_THAT(keys({"list"}).out, HasSubstr("revoked"));
}

TEST_F(CtlKeysTest, JsonHasEveryField) {
    const Outcome added = keys({"add", "--admin", "--expires-in", "90d", "--json"});
    ASSERT_EQ(added.code, kDone) << added.err;
    const auto made = boost::json::parse(added.out).as_object();
    EXPECT_EQ(*admission::key_id(made.at("key").as_string()), made.at("id").as_string());
    const auto listed = boost::json::parse(keys({"list", "--json"}).out).as_array();
    ASSERT_EQ(listed.size(), 1U);
    const auto& key = listed[0].as_object();
    EXPECT_EQ(key.at("tenant"), "default");
    EXPECT_EQ(key.at("admin"), true);
    EXPECT_NEAR(static_cast<double>(key.at("expires").as_int64() - key.at("created").as_int64()),
                90.0 * 86'400, 5);
    EXPECT_TRUE(key.at("revoked").is_null());
    EXPECT_FALSE(key.contains("sha256"));
}

TEST_F(CtlKeysTest, TheConfigurationNamesTheFileAndTheTenants) {
    const std::string path = folder_.path() + "/other.json";
    const TemporaryFile config("[gateway]\nkeys = \"" + path + "\"\n[[tenant]]\nname = \"acme\"\n");
    const Outcome good = keys({"add", "--tenant", "acme", "--config", config.path()});
    EXPECT_EQ(good.code, kDone);
    EXPECT_THAT(good.err, Not(HasSubstr("[[tenant]]")));
    EXPECT_THAT(keys({"add", "--tenant", "amce", "--config", config.path()}).err,
                HasSubstr("no [[tenant]] \"amce\""));
    EXPECT_EQ(admission::KeyTable::parse(content(path))->keys().size(), 2U);
}

TEST_F(CtlKeysTest, WrongUseChangesNothing) {
    EXPECT_EQ(keys({"add", "--tenant", "A B"}).code, kWrongUse);
    EXPECT_EQ(keys({"add", "--expires-in", "soon"}).code, kWrongUse);
    EXPECT_EQ(keys({"add", "--expires-in", "0s"}).code, kWrongUse);
    const Outcome unknown = keys({"revoke", "0123456789abcdef"});
    EXPECT_EQ(unknown.code, kFailed);
    EXPECT_THAT(unknown.err, HasSubstr("there is no key with this id"));
    EXPECT_EQ(content(file()), "");

    ASSERT_EQ(keys({"add"}).code, kDone);
    std::ofstream(file()) << "{\"version\":1,\"keys\":[7]}";
    const Outcome broken = keys({"add"});
    EXPECT_EQ(broken.code, kWrongUse);
    EXPECT_THAT(broken.err, HasSubstr("keys.json: keys[0]: must be an object"));
    EXPECT_EQ(content(file()), "{\"version\":1,\"keys\":[7]}");
}

}  // namespace
}  // namespace sluice::app
