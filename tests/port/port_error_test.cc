#include "port/port_error.h"

namespace sluice::port {
namespace {

TEST(PortErrorTest, ComesBackEqual) {
    const PortError error{
        .message = "too \"long\"", .code = std::string(kInvalidRequest), .param = "input_ids[3]"};
    EXPECT_EQ(parse_port_error(to_json(error)), error);
    EXPECT_EQ(to_json(PortError{.message = "m", .code = "c", .param = ""}),
              R"({"error":{"message":"m","code":"c"}})");
}

TEST(PortErrorTest, TheErrorsOfOtherServersAreReadToo) {
    const auto error =
        parse_port_error(R"({"error":{"message":"m","type":"t","param":null,"code":"c"}})");
    EXPECT_EQ(error, (PortError{.message = "m", .code = "c", .param = ""}));
}

TEST(PortErrorTest, AnythingElseIsAnError) {
    for (const char* json : {"", "busy", "{}", R"({"error":"busy"})", R"({"error":{"code":7}})"}) {
        EXPECT_FALSE(parse_port_error(json).has_value()) << json;
    }
}

}  // namespace
}  // namespace sluice::port
