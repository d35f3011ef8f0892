#include "port/kv_orders.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace sluice::port {
namespace {

std::string place(const auto& parsed) { return parsed ? "none" : parsed.error().place(); }

TEST(KvOrdersTest, WhatIsWrittenReadsBackAsTheSame) {
    const KvDropOrder drop{.tenant = "a", .retention = Retention::kAgent, .name = "kv:a:agent:00"};
    EXPECT_EQ(to_json(drop), R"({"tenant":"a","class":"agent","name":"kv:a:agent:00"})");
    EXPECT_EQ(parse_kv_drop_order(to_json(drop)), drop);
    const KvPinOrder pin{.names = {"x", "y"}, .seconds = 60};
    EXPECT_EQ(to_json(pin), R"({"names":["x","y"],"seconds":60})");
    EXPECT_EQ(parse_kv_pin_order(to_json(pin)), pin);
    const KvNodesOrder nodes{.epoch = 4, .nodes = {"redis://h:1"}};
    EXPECT_EQ(to_json(nodes), R"({"epoch":4,"nodes":["redis://h:1"]})");
    EXPECT_EQ(parse_kv_nodes_order(to_json(nodes)), nodes);
    const KvBoundsOrder bounds{.tenants = {{"a", 5}, {"b", 7}}};
    EXPECT_EQ(to_json(bounds), R"({"tenants":{"a":5,"b":7}})");
    EXPECT_EQ(parse_kv_bounds_order(to_json(bounds)), bounds);
    const KvOrderResult result{.done = 3, .bytes = 9, .failed = 1};
    EXPECT_EQ(to_json(result), R"({"done":3,"bytes":9,"failed":1})");
    EXPECT_EQ(parse_kv_order_result(to_json(result)), result);
}

TEST(KvOrdersTest, NothingIsDroppedUnlessSomethingIsNamed) {
    EXPECT_FALSE(parse_kv_drop_order("{}").has_value());
    EXPECT_FALSE(parse_kv_drop_order(R"({"tenant":""})").has_value());
    EXPECT_EQ(place(parse_kv_drop_order(R"({"class":"old"})")), "class");
    EXPECT_TRUE(parse_kv_drop_order(R"({"class":"none"})").has_value());
}

TEST(KvOrdersTest, BoundsAreNamedWithTheirPlace) {
    const std::string too_long(limits::kKvNameBytes + 1, 'x');
    EXPECT_EQ(place(parse_kv_pin_order(R"({"names":["a",")" + too_long + R"("]})")), "names[1]");
    EXPECT_EQ(place(parse_kv_pin_order(R"({"names":[1]})")), "names[0]");
    EXPECT_EQ(place(parse_kv_pin_order(R"({"seconds":86401})")), "seconds");
    EXPECT_EQ(place(parse_kv_nodes_order(R"({"epoch":-1})")), "epoch");
    EXPECT_EQ(place(parse_kv_bounds_order("{}")), "tenants");
    EXPECT_EQ(place(parse_kv_bounds_order(R"({"tenants":{"a":0}})")), "tenants.a");
    EXPECT_EQ(place(parse_kv_bounds_order(R"({"tenants":{"a":"1"}})")), "tenants.a");
    EXPECT_EQ(place(parse_kv_bounds_order(R"({"tenants":{")" + too_long + R"(":1}})")), "tenants");
}

}  // namespace
}  // namespace sluice::port
