#include "record/version_manifest.h"

namespace sluice::record {
namespace {

port::ServerInfo info() {
    return {.engine = "native",
            .model = "Krill",
            .fingerprint = "aa",
            .numerics_id = "1/q8_0",
            .dialect = "deepseek-v4.1",
            .version = "0.1.0",
            .commit = "abc",
            .build_flags = "-O2",
            .hardware = "a CPU"};
}

TEST(VersionManifestTest, EqualVersionsHaveEqualDigests) {
    EXPECT_EQ(digest(make_manifest(info())), digest(make_manifest(info())));
    EXPECT_EQ(digest(make_manifest(info())).substr(0, 3), "fp_");
    EXPECT_EQ(digest(make_manifest(info())).size(), 19U);
}

TEST(VersionManifestTest, EveryFieldChangesTheDigest) {
    const VersionManifest manifest = make_manifest(info());
    VersionManifest changed = manifest;
    int fields = 0;
    visit_fields(changed, [&](std::string_view name, std::string& value) {
        const std::string before = std::exchange(value, "another");
        EXPECT_NE(digest(changed), digest(manifest)) << name;
        value = before;
        ++fields;
    });
    EXPECT_EQ(fields, 14);
    EXPECT_EQ(changed, manifest);
}

TEST(VersionManifestTest, ComesBackEqual) {
    const VersionManifest manifest = make_manifest(info());
    EXPECT_EQ(parse_version_manifest(to_json(manifest)), manifest);
    EXPECT_EQ(parse_version_manifest("{}"), VersionManifest{});
    EXPECT_EQ(parse_version_manifest(R"({"engine":7,"new":[1]})"), VersionManifest{});
    EXPECT_FALSE(parse_version_manifest("[]").has_value());
    EXPECT_FALSE(parse_version_manifest("{").has_value());
}

TEST(VersionManifestTest, TheGatewayIsPartOfIt) {
    EXPECT_EQ(make_manifest(info()).gateway, this_gateway());
    EXPECT_NE(this_gateway().find("0."), std::string::npos);
}

}  // namespace
}  // namespace sluice::record
