#include "gateway/kv_members.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/app/temporary_folder.h"

namespace sluice::gateway {
namespace {

using testing::ElementsAre;

const KvNode kFirst{.url = "redis://10.0.0.7:7301", .http = "http://10.0.0.7:7401"};
const KvNode kSecond{.url = "redis://10.0.0.8:7301", .http = "http://10.0.0.8:7401"};
const KvNode kForeign{.url = "rediss://cache:6380", .password_env = "KV_MEMBERS_TEST_PASSWORD"};

class KvMembersTest : public testing::Test {
protected:
    KvMembersTest() { ::setenv("KV_MEMBERS_TEST_PASSWORD", "secret", 1); }
    ~KvMembersTest() override { ::unsetenv("KV_MEMBERS_TEST_PASSWORD"); }
    KvMembersTest(const KvMembersTest&) = delete;
    KvMembersTest& operator=(const KvMembersTest&) = delete;

    [[nodiscard]] std::string path() const { return folder_.path() + "/kv_nodes.json"; }
    [[nodiscard]] KvMembers open(std::vector<KvNode> configured) const {
        return *KvMembers::open(path(), std::move(configured));
    }

    app::TemporaryFolder folder_;
};

TEST_F(KvMembersTest, WithoutANodeThereIsNoEpoch) {
    EXPECT_EQ(open({}).epoch(), 0U);
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_EQ(open({kFirst}).epoch(), 1U);
}

TEST_F(KvMembersTest, EachChangeMakesANewEpochAndNothingElseDoes) {
    KvMembers members = open({kFirst});
    EXPECT_EQ(*members.add(kSecond), true);
    EXPECT_EQ(members.epoch(), 2U);
    EXPECT_EQ(*members.add(kSecond), false);
    EXPECT_EQ(members.epoch(), 2U);
    ASSERT_TRUE(members.remove(kFirst.url).has_value());
    EXPECT_EQ(members.epoch(), 3U);
    EXPECT_THAT(members.nodes(), ElementsAre(kSecond));
    EXPECT_EQ(members.remove(kFirst.url).error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(members.epoch(), 3U);
}

TEST_F(KvMembersTest, ARestartKnowsTheListAndItsEpoch) {
    {
        KvMembers members = open({kFirst});
        ASSERT_TRUE(members.add(kForeign).has_value());
        ASSERT_TRUE(members.remove(kFirst.url).has_value());
    }
    const KvMembers again = open({kFirst});
    EXPECT_EQ(again.epoch(), 3U);
    EXPECT_THAT(again.nodes(), ElementsAre(kForeign));
}

TEST_F(KvMembersTest, AnotherConfigurationChangesItsOwnNodesAlone) {
    ASSERT_TRUE(open({kFirst}).add(kForeign).has_value());
    const KvMembers moved = open({kSecond});
    EXPECT_EQ(moved.epoch(), 3U);
    EXPECT_THAT(moved.nodes(), ElementsAre(kSecond, kForeign));
    // What was added by hand and is configured now is one node.
    EXPECT_THAT(open({kSecond, kForeign}).nodes(), ElementsAre(kSecond, kForeign));
    EXPECT_THAT(open({}).nodes(), ElementsAre());
}

TEST_F(KvMembersTest, AListThatCannotBeKeptDoesNotChange) {
    KvMembers members = open({kFirst});
    std::filesystem::remove_all(folder_.path());
    EXPECT_FALSE(members.add(kSecond).has_value());
    EXPECT_EQ(members.epoch(), 1U);
    EXPECT_THAT(members.nodes(), ElementsAre(kFirst));
}

TEST_F(KvMembersTest, ADamagedFileIsAnErrorAndNotAnEmptyList) {
    for (const char* text :
         {"", "{", "[]", R"({"epoch":1})", R"({"epoch":"x","configured":[],"nodes":[]})",
          R"({"epoch":1,"configured":[],"nodes":[{"url":1}]})"}) {
        std::ofstream(path()) << text;
        const auto opened = KvMembers::open(path(), {});
        ASSERT_FALSE(opened.has_value()) << text;
        EXPECT_EQ(opened.error().code(), ErrorCode::kCorrupt);
    }
}

TEST_F(KvMembersTest, AChangeIsNewerThanWhatWorkersFollow) {
    KvMembers members = open({kFirst});
    members.saw(7);
    EXPECT_EQ(members.epoch(), 1U);
    ASSERT_TRUE(members.add(kSecond).has_value());
    EXPECT_EQ(members.epoch(), 8U);
}

TEST_F(KvMembersTest, TheSameListOvertakesWhatWorkersFollow) {
    KvMembers members = open({kFirst});
    members.saw(7);
    ASSERT_TRUE(members.overtake().has_value());
    EXPECT_EQ(members.epoch(), 8U);
    EXPECT_THAT(members.nodes(), ElementsAre(kFirst));
    EXPECT_EQ(open({kFirst}).epoch(), 8U) << "written down before it counts";
}

TEST_F(KvMembersTest, ANodeWhosePasswordIsNotToBeHadIsRefused) {
    ::unsetenv("KV_MEMBERS_TEST_PASSWORD");
    KvMembers members = open({});
    const auto added = members.add(kForeign);
    ASSERT_FALSE(added.has_value());
    EXPECT_EQ(added.error().code(), ErrorCode::kInvalid);
    EXPECT_EQ(added.error().place(), "password_env");
    EXPECT_THAT(added.error().message(), testing::HasSubstr("$KV_MEMBERS_TEST_PASSWORD"));
    EXPECT_EQ(members.epoch(), 0U);
}

TEST_F(KvMembersTest, WhatIsNoNodeIsRefusedWithItsField) {
    KvMembers members = open({});
    const auto place = [&](KvNode node) { return members.add(std::move(node)).error().place(); };
    for (const char* url : {"", "redis://h", "http://h:1", "redis://h:1/0", "redis://:p@h:1",
                            "redis://h:1?x", "redis://h:1\n"})
        EXPECT_EQ(place({.url = url}), "url") << url;
    EXPECT_EQ(place({.url = "redis://h:1", .http = "h:2"}), "http");
    EXPECT_EQ(place({.url = "redis://h:1", .http = "http://h:2/"}), "http");
    EXPECT_EQ(members.epoch(), 0U);
    EXPECT_TRUE(members.add({.url = "redis+cluster://h:1,i:2"}).has_value());
}

TEST_F(KvMembersTest, APasswordComesFromTheEnvironmentAndIsNowhereElse) {
    ::unsetenv("KV_MEMBERS_TEST_PASSWORD");
    EXPECT_FALSE(url_with_password(kForeign).has_value());
    ::setenv("KV_MEMBERS_TEST_PASSWORD", "p@ss:w/rd", 1);
    EXPECT_EQ(*url_with_password(kForeign), "rediss://:p%40ss%3Aw%2Frd@cache:6380");
    EXPECT_EQ(*url_with_password(kFirst), kFirst.url);
    ASSERT_TRUE(open({}).add(kForeign).has_value());
    std::ifstream file(path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(text.find("p@ss"), std::string::npos);
}

}  // namespace
}  // namespace sluice::gateway
