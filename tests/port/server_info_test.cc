#include "port/server_info.h"

namespace sluice::port {
namespace {

ServerInfo example() {
    ServerInfo info;
    info.model = "Krill";
    info.fingerprint = "aa";
    info.numerics_id = "1/f32";
    info.tokenizer_digest = "bb";
    info.dialect = "deepseek-v4.1";
    info.kv_components = {{.name = "mla", .layout = "layer-major rows", .dtype = "f32"},
                          {.name = "state",
                           .quantum = 128,
                           .replay = 7,
                           .min_hit = 64,
                           .hit_exact = false,
                           .shard = 3}};
    info.context_length = ~std::uint64_t{0};
    info.pool_tokens = 131'072;
    info.attention_tokens = 921;
    info.max_running = 64;
    info.max_waiting = 8192;
    info.vocabulary = 4096;
    info.dp_ranks = 2;
    info.failure_group = "rack \"1\"";
    info.device_memory_bytes = 1;
    info.version = "0.1.0";
    info.commit = "abc";
    info.build_flags = "-O2";
    info.hardware = "a CPU";
    info.driver = "570.1";
    info.topology = "tp=2";
    return info;
}

TEST(ServerInfoTest, ComesBackEqual) {
    for (const ServerInfo& info : {example(), ServerInfo{}}) {
        const Result<ServerInfo> back = parse_server_info(to_json(info));
        ASSERT_TRUE(back.has_value()) << back.error().to_string();
        EXPECT_EQ(*back, info);
    }
}

TEST(ServerInfoTest, ComponentsSayHowExactAHitIs) {
    const std::string json = to_json(example());
    EXPECT_NE(
        json.find(R"({"name":"mla","quantum":1,"replay":0,"min_hit":0,"hit_exactness":"exact",)"
                  R"("shard":0,"layout":"layer-major rows","dtype":"f32"})"),
        std::string::npos);
    EXPECT_NE(json.find(R"("hit_exactness":"approximate")"), std::string::npos);
}

TEST(ServerInfoTest, WhatIsLeftOutHasItsDefault) {
    EXPECT_EQ(parse_server_info(R"({"future_field":{"a":1}})"), ServerInfo{});
}

TEST(ServerInfoTest, AWrongFieldIsNamedWithItsPlace) {
    const auto place = [](std::string_view json) {
        const Result<ServerInfo> info = parse_server_info(json);
        return info ? "none" : info.error().place();
    };
    EXPECT_EQ(place(R"({"block_tokens":0})"), "block_tokens");
    EXPECT_EQ(place(R"({"model":7})"), "model");
    EXPECT_EQ(place(R"({"kv_components":[1]})"), "kv_components[0]");
    EXPECT_EQ(place(R"({"kv_components":[{},{"quantum":0}]})"), "kv_components[1].quantum");
    EXPECT_EQ(place(R"({"kv_components":[{"hit_exactness":"maybe"}]})"),
              "kv_components[0].hit_exactness");
    EXPECT_EQ(place("[]"), "");
}

}  // namespace
}  // namespace sluice::port
