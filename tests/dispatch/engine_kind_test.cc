#include "dispatch/engine_kind.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/places.h"

namespace sluice::dispatch {
namespace {

TEST(EngineKindTest, OnlyOurOwnEngineGoesOnExactly) {
    EXPECT_EQ(engine_kind("native").resume, Resume::kExact);
    for (const EngineKind& kind : engine_kinds()) {
        const bool own = kind.name == "native";
        EXPECT_EQ(kind.resume, own ? Resume::kExact : Resume::kRefused) << kind.name;
        EXPECT_EQ(rules_of(kind.name).resumable, own) << kind.name;
    }
}

TEST(EngineKindTest, WhatIsUnknownIsRefused) {
    EXPECT_EQ(engine_kind("something else").resume, Resume::kRefused);
}

TEST(EngineKindTest, TheDocumentedTableIsThisOne) {
    std::ifstream file(std::string(kSourceDir) + "/docs/pools.md");
    std::stringstream page;
    page << file.rdbuf();
    for (const EngineKind& kind : engine_kinds()) {
        const std::string row = "| `" + std::string(kind.name) + "` | " +
                                std::string(to_string(kind.resume)) + " | " +
                                std::string(kind.why) + " |";
        EXPECT_NE(page.str().find(row), std::string::npos) << row;
    }
}

}  // namespace
}  // namespace sluice::dispatch
