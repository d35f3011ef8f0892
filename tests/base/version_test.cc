#include "base/version.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace sluice {
namespace {

TEST(VersionTest, TheJsonHasEveryKey) {
    const auto json = boost::json::parse(version_json({.version = 3, .targets = {"AVX2", "SSE4"}}));
    for (const char* key : {"version", "commit", "compiler", "flags"}) {
        EXPECT_FALSE(json.at(key).as_string().empty()) << key;
    }
    EXPECT_EQ(json.at("arithmetic").as_int64(), 3);
    EXPECT_EQ(json.at("targets").as_array().size(), 2U);
}

TEST(VersionTest, TheTextNamesVersionAndArithmetic) {
    const std::string text = version_text({.version = 3, .targets = {"AVX2"}});
    EXPECT_THAT(text, testing::HasSubstr("sluice " + version().version + "\n"));
    EXPECT_THAT(text, testing::HasSubstr("arithmetic  3\ntargets     AVX2\n"));
}

TEST(VersionTest, FlagsNameTheOptimisation) {
    EXPECT_THAT(version().flags, testing::HasSubstr("-O"));
}

}  // namespace
}  // namespace sluice
