#include "gates/owners.h"

#include <gmock/gmock.h>

#include "base/limits.h"

namespace sluice::gates {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string_view> kPools = {"service", "stable", "candidate"};

std::vector<std::string> mistakes(std::string_view text) {
    const auto owners = parse_owners(text, "o.toml", kPools);
    std::vector<std::string> messages;
    if (owners) return messages;
    for (const Error& error : owners.error()) messages.push_back(error.to_string());
    return messages;
}

TEST(OwnersTest, ARowForAPoolGoesBeforeTheOneForAll) {
    const auto owners = parse_owners(R"(
owner = "on-call"
[[failure]]
name = "overload"
owner = "capacity"
[[failure]]
name = "overload"
pool = "candidate"
owner = "research"
accepted = "it is a trial"
)",
                                     "o.toml", kPools);
    ASSERT_TRUE(owners);
    EXPECT_EQ(owners->owner, "on-call");
    EXPECT_EQ(owners->find(Failure::kOverload, "stable")->owner, "capacity");
    EXPECT_EQ(owners->find(Failure::kOverload, "candidate")->owner, "research");
    EXPECT_EQ(owners->find(Failure::kOverload, "candidate")->place, "o.toml:6");
    EXPECT_EQ(owners->find(Failure::kMachineLost, "service"), nullptr);
}

TEST(OwnersTest, EveryMistakeIsToldWithItsLineAndTheNearestName) {
    EXPECT_THAT(mistakes(R"([[failure]]
name = "overlaod"
[[failure]]
name = "overload"
pool = "canditate"
[[failure]]
name = "machine_lost"
caught_by = "a"
accepted = "b"
[[failure]]
name = "machine_lost"
owned = "x"
)"),
                ElementsAre("o.toml:2: failure[0].name is no failure; did you mean 'overload'?",
                            "o.toml:5: failure[1].pool names no pool; did you mean 'candidate'?",
                            "o.toml:9: failure[2].accepted and caught_by are both there; keep one",
                            "o.toml:11: failure[3].name has an earlier row for the same pool",
                            "o.toml:12: unknown key 'failure[3].owned'; did you mean 'owner'?"));
}

TEST(OwnersTest, ALayerNamesWhatItsKindDoes) {
    EXPECT_THAT(mistakes("[[layer]]\nname = \"x\"\nkind = \"trafic\"\n"),
                ElementsAre(HasSubstr("o.toml:3: layer[0].kind must be")));
    EXPECT_THAT(
        mistakes(R"([[layer]]
name = "x"
kind = "cache"
does = ["retries", "events"]
settled = ["checksums"]
)"),
        ElementsAre(HasSubstr("o.toml:4: layer[0].does has a name that no cache layer does"),
                    HasSubstr("o.toml:5: layer[0].settled has checksums, which does has not")));
    EXPECT_THAT(mistakes("[[layer]]\nkind = \"cache\"\n"),
                ElementsAre(HasSubstr("must say what the layer is called"),
                            HasSubstr("must name what the layer does")));
}

TEST(OwnersTest, WhatAReportPrintsIsShortAndOnOneLine) {
    EXPECT_THAT(mistakes("owner = \"a\\nb\"\n"),
                ElementsAre(HasSubstr("must be one line of text")));
    const std::string most(limits::kOwnerTextBytes, 'x');
    EXPECT_THAT(mistakes("owner = \"" + most + "\"\n"), testing::IsEmpty());
    EXPECT_THAT(mistakes("owner = \"" + most + "x\"\n"), ElementsAre(HasSubstr("1024 bytes")));
}

TEST(OwnersTest, TheNumberOfRowsIsBounded) {
    std::string text;
    for (std::size_t row = 0; row <= limits::kOwnerRows; ++row)
        text += "[[layer]]\nname = \"x\"\nkind = \"cache\"\ndoes = [\"events\"]\n";
    EXPECT_THAT(mistakes(text), ElementsAre(HasSubstr("is one row more than 1024")));
}

TEST(OwnersTest, EveryFailureAndInterfaceHasANameOfItsOwn) {
    for (const std::string_view name : failure_names())
        EXPECT_EQ(text_of(*parse_failure(name)).name, name);
    for (const Interface& interface : interfaces())
        EXPECT_EQ(find_interface(interface.kind, interface.name), &interface);
}

}  // namespace
}  // namespace sluice::gates
