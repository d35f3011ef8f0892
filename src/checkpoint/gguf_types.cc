#include "checkpoint/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::checkpoint {
namespace {

struct ScalarType {
    std::string_view name;
    std::uint32_t bytes;
};

constexpr auto kValueTypes = std::to_array<ScalarType>({
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
});

struct TensorType {
    std::uint32_t number;
    std::string_view name;
    BlockLayout layout;
};

constexpr auto kTensorTypes = std::to_array<TensorType>({
    {0, "f32", {1, 4}},         {1, "f16", {1, 2}},         {2, "q4_0", {32, 18}},
    {3, "q4_1", {32, 20}},      {6, "q5_0", {32, 22}},      {7, "q5_1", {32, 24}},
    {8, "q8_0", {32, 34}},      {9, "q8_1", {32, 36}},      {10, "q2_K", {256, 84}},
    {11, "q3_K", {256, 110}},   {12, "q4_K", {256, 144}},   {13, "q5_K", {256, 176}},
    {14, "q6_K", {256, 210}},   {15, "q8_K", {256, 292}},   {16, "iq2_xxs", {256, 66}},
    {17, "iq2_xs", {256, 74}},  {18, "iq3_xxs", {256, 98}}, {19, "iq1_s", {256, 50}},
    {20, "iq4_nl", {32, 18}},   {21, "iq3_s", {256, 110}},  {22, "iq2_s", {256, 82}},
    {23, "iq4_xs", {256, 136}}, {24, "i8", {1, 1}},         {25, "i16", {1, 2}},
    {26, "i32", {1, 4}},        {27, "i64", {1, 8}},        {28, "f64", {1, 8}},
    {29, "iq1_m", {256, 56}},   {30, "bf16", {1, 2}},       {34, "tq1_0", {256, 54}},
    {35, "tq2_0", {256, 66}},   {39, "mxfp4", {32, 17}},
});

const TensorType* find_tensor_type(std::uint32_t number) {
    const auto* const found = std::ranges::find(kTensorTypes, number, &TensorType::number);
    return found == kTensorTypes.end() ? nullptr : found;
}

}  // namespace

std::optional<std::uint32_t> value_bytes(std::uint32_t type) {
    if (type >= kValueTypes.size()) return std::nullopt;
    return kValueTypes[type].bytes;
}

std::string value_type_name(std::uint32_t type) {
    if (type >= kValueTypes.size()) return fmt::format("type {}", type);
    return std::string(kValueTypes[type].name);
}

std::optional<BlockLayout> block_layout(std::uint32_t raw_type) {
    const TensorType* const type = find_tensor_type(raw_type);
    if (type == nullptr) return std::nullopt;
    return type->layout;
}

std::string tensor_type_name(std::uint32_t raw_type) {
    const TensorType* const type = find_tensor_type(raw_type);
    return type == nullptr ? fmt::format("type {}", raw_type) : std::string(type->name);
}

}  // namespace sluice::checkpoint
