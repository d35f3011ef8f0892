#include "port/kv_pull.h"

namespace sluice::port {
namespace {

const std::string kHold = "0123456789abcdef0123456789abcdef";

TEST(KvPullTest, NamesOnTheWireAreThoseOfTheContract) {
    const KvPullRequest pull{.hold = kHold, .keys = {sha256("a")}};
    EXPECT_EQ(to_json(pull),
              R"({"hold":"0123456789abcdef0123456789abcdef","keys":[")"
              R"(ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"]})");
    EXPECT_EQ(parse_kv_pull_request(to_json(pull)), pull);
    EXPECT_EQ(parse_kv_pull_request(R"({"keys":[]})"), KvPullRequest{});  // Held for nobody.
    const KvPullRequest there{.keys = {}, .tenant = "acme"};
    EXPECT_EQ(to_json(there), R"({"keys":[],"tenant":"acme"})");
    EXPECT_EQ(parse_kv_pull_request(to_json(there)), there);
    const KvReleaseRequest release{.hold = kHold};
    EXPECT_EQ(to_json(release), R"({"hold":"0123456789abcdef0123456789abcdef"})");
    EXPECT_EQ(parse_kv_release_request(to_json(release)), release);
}

TEST(KvPullTest, AWrongFieldIsNamedWithItsPlace) {
    const auto place = [](const auto& parsed) { return parsed ? "none" : parsed.error().place(); };
    EXPECT_EQ(place(parse_kv_pull_request(R"({"hold":"ab"})")), "hold");
    EXPECT_EQ(place(parse_kv_release_request(R"({"hold":"no"})")), "hold");
    EXPECT_EQ(place(parse_kv_pull_request(R"({"hold":")" + kHold + R"(","keys":[1]})")), "keys[0]");
    EXPECT_EQ(place(parse_kv_pull_request("[]")), "");
}

}  // namespace
}  // namespace sluice::port
