#include "protocol/errors.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sluice::protocol {
namespace {

TEST(ErrorsTest, ABodyHasTheProtocolsFourFields) {
    EXPECT_EQ(boost::json::parse(to_json(
                  to_api_error(Error::unsupported("no \"tools\" yet", "messages[0].tool_calls")))),
              boost::json::parse(R"({"error":{"message":"no \"tools\" yet",
                  "type":"invalid_request_error","param":"messages[0].tool_calls",
                  "code":"unsupported"}})"));
    EXPECT_EQ(to_json({ApiErrorCode::kInternal, "m", ""}),
              R"({"error":{"message":"m","type":"server_error","param":null,"code":"internal"}})");
}

TEST(ErrorsTest, EveryCodeHasANameAndAnErrorStatus) {
    for (int i = 0; i <= static_cast<int>(ApiErrorCode::kInternal); ++i) {
        const auto code = static_cast<ApiErrorCode>(i);
        EXPECT_FALSE(to_string(code).empty());
        EXPECT_GE(http_status(code), 400);
        EXPECT_LT(http_status(code), 600);
    }
}

TEST(ErrorsTest, WaitingHelpsExactlyWhereTheStatusSaysSo) {
    for (int i = 0; i <= static_cast<int>(ApiErrorCode::kInternal); ++i) {
        const auto code = static_cast<ApiErrorCode>(i);
        const int status = http_status(code);
        EXPECT_EQ(wants_retry_after(code), status == 429 || status == 503) << to_string(code);
    }
}

TEST(ErrorsTest, AContextThatIsTooSmallNamesTheNumbers) {
    const ApiError error = context_length_exceeded(1000, 100, 1024);
    EXPECT_EQ(http_status(error.code), 400);
    EXPECT_EQ(to_string(error.code), "context_length_exceeded");
    for (const char* number : {"1000", "100", "1024"}) {
        EXPECT_NE(error.message.find(number), std::string::npos);
    }
}

TEST(ErrorsTest, AnUnknownModelIsNamed) {
    EXPECT_EQ(http_status(model_not_found("gpt").code), 404);
    EXPECT_NE(model_not_found("gpt").message.find("gpt"), std::string::npos);
    EXPECT_EQ(model_not_found("gpt").param, "model");
}

TEST(ErrorsTest, ARequestThatKillsWorkersIsNotRetriedByClients) {
    EXPECT_LT(http_status(ApiErrorCode::kRequestQuarantined), 500);
}

}  // namespace
}  // namespace sluice::protocol
