#include "port/abort.h"

namespace sluice::port {
namespace {

TEST(AbortTest, ComesBackEqual) {
    const AbortRequest request{.rid = "0123456789abcdef0123456789abcdef"};
    EXPECT_EQ(to_json(request), R"({"rid":"0123456789abcdef0123456789abcdef"})");
    EXPECT_EQ(parse_abort_request(to_json(request)), request);
}

TEST(AbortTest, APrefixIsNoRid) {
    for (const char* json : {R"({"rid":"0123"})", R"({"rid":""})", R"({})", R"({"rid":null})"}) {
        const Result<AbortRequest> request = parse_abort_request(json);
        ASSERT_FALSE(request.has_value()) << json;
        EXPECT_EQ(request.error().place(), "rid");
    }
}

}  // namespace
}  // namespace sluice::port
