#include "gateway/output_check.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(OutputCheckTest, TextThatWasToBeJsonIsInvalidIfItIsNone) {
    EXPECT_TRUE(is_invalid(RequestKind::kJsonSchema, {.text = R"({"a":1)"}));
    EXPECT_TRUE(is_invalid(RequestKind::kJsonSchema, {.text = ""}));
    EXPECT_FALSE(is_invalid(RequestKind::kJsonSchema, {.text = R"( {"a":1} )"}));
    EXPECT_FALSE(is_invalid(RequestKind::kText, {.text = R"({"a":1)"}));
}

TEST(OutputCheckTest, AToolIsCalledWithJson) {
    EXPECT_TRUE(
        is_invalid(RequestKind::kTools, {.tool_calls = {{.name = "a", .arguments = "{}"},
                                                        {.name = "b", .arguments = R"({"x":)"}}}));
    EXPECT_FALSE(
        is_invalid(RequestKind::kTools, {.tool_calls = {{.name = "a", .arguments = "{}"}}}));
    EXPECT_FALSE(is_invalid(RequestKind::kTools, {.text = "No tool was needed."}));
    EXPECT_FALSE(
        is_invalid(RequestKind::kJsonSchema, {.tool_calls = {{.name = "a", .arguments = "{}"}}}));
}

TEST(OutputCheckTest, WhatWasCutOffIsNotBroken) {
    EXPECT_FALSE(
        is_invalid(RequestKind::kJsonSchema, {.text = R"({"a":)", .finish_reason = "length"}));
    EXPECT_FALSE(is_invalid(RequestKind::kJsonSchema, {.text = R"({"a":)", .cut = true}));
}

}  // namespace
}  // namespace sluice::gateway
