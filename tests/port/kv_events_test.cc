#include "port/kv_events.h"

#include <random>

#include "base/limits.h"

namespace sluice::port {
namespace {

Sha256Digest key(std::string_view name) { return sha256(name); }

std::string place(std::string_view json) {
    const Result<KvEventPage> page = parse_kv_event_page(json);
    return page ? "none" : page.error().place();
}

std::string with_events(std::string_view events) {
    return R"({"epoch":"0a","next":7,"events":[)" + std::string(events) + "]}";
}

TEST(KvEventsTest, NamesOnTheWireAreThoseOfTheContract) {
    const std::string a = to_hex(key("a"));
    const std::string b = to_hex(key("b"));
    KvEventPage page{.epoch = "0a", .next = 9, .page = 3, .reset = true, .events = {}};
    page.events = {{.keys = {key("a")}},
                   {.parent = key("a"), .keys = {key("b")}, .tier = "dram"},
                   {.type = KvEventType::kRemoved, .keys = {key("b"), key("a")}},
                   {.type = KvEventType::kCleared}};
    EXPECT_EQ(to_json(page), R"({"epoch":"0a","next":9,"page":3,"reset":true,"events":[)"
                             R"({"type":"stored","parent":null,"keys":[")" +
                                 a + R"("],"tier":"pool"},{"type":"stored","parent":")" + a +
                                 R"(","keys":[")" + b +
                                 R"("],"tier":"dram"},{"type":"removed","keys":[")" + b + R"(",")" +
                                 a + R"("]},{"type":"cleared"}]})");
    EXPECT_EQ(parse_kv_event_page(to_json(page)), page);
}

TEST(KvEventsTest, RandomPagesComeBackEqual) {
    std::mt19937_64 random(1);
    const auto keys = [&random] {
        std::vector<Sha256Digest> some(random() % 4);
        for (Sha256Digest& each : some) each = key(std::to_string(random()));
        return some;
    };
    for (int round = 0; round < 2'000; ++round) {
        KvEventPage page{.epoch = "12ab", .next = random(), .page = {}, .reset = random() % 2 == 0};
        if (random() % 2 == 0) page.page = random() >> 1;
        for (std::uint64_t left = random() % 5; left > 0; --left) {
            KvEvent event{.type = static_cast<KvEventType>(random() % 3)};
            if (event.type != KvEventType::kCleared) event.keys = keys();
            if (event.type == KvEventType::kStored && random() % 2 == 0) event.parent = key("p");
            page.events.push_back(event);
        }
        const auto back = parse_kv_event_page(to_json(page));
        ASSERT_TRUE(back.has_value()) << back.error().to_string();
        ASSERT_EQ(*back, page);
    }
}

TEST(KvEventsTest, AWrongFieldIsNamedWithItsPlace) {
    EXPECT_EQ(place("{}"), "epoch");
    EXPECT_EQ(place(R"({"epoch":"a&b","next":1})"), "epoch");
    EXPECT_EQ(place(R"({"epoch":"0a","next":-1})"), "next");
    EXPECT_EQ(place(with_events("7")), "events[0]");
    EXPECT_EQ(place(with_events(R"({"type":"moved"})")), "events[0].type");
    EXPECT_EQ(place(with_events(R"({"type":"stored","keys":["ab"]})")), "events[0].keys[0]");
    EXPECT_EQ(place(with_events(R"({"type":"stored","parent":"ab"})")), "events[0].parent");
    EXPECT_EQ(place(with_events("")), "none");
}

TEST(KvEventsTest, KeysAreBoundedOverAllEventsOfAPage) {
    std::string list = "\"" + to_hex(key("a")) + "\"";
    for (std::size_t i = 1; i < limits::kPortBlockKeys; ++i)
        list += ",\"" + to_hex(key("a")) + "\"";
    const std::string full = R"({"type":"removed","keys":[)" + list + "]}";
    const std::string one = R"({"type":"removed","keys":[")" + to_hex(key("a")) + "\"]}";
    EXPECT_EQ(place(with_events(full)), "none");
    EXPECT_EQ(place(with_events(full + "," + one)), "events[1].keys");
}

TEST(KvEventsTest, TheNextQuestionFollowsTheAnswer) {
    const KvEventQuery first{.wait_ms = 500, .rank = 2};
    EXPECT_EQ(first.target(), "/kv_events?from=0&wait_ms=500&rank=2");
    const KvEventQuery second =
        first.after({.epoch = "0a", .next = 7, .page = 64, .reset = true, .events = {}});
    EXPECT_EQ(second.target(), "/kv_events?from=7&wait_ms=500&epoch=0a&page=64&rank=2");
    const KvEventQuery third =
        second.after({.epoch = "0a", .next = 7, .page = {}, .reset = false, .events = {}});
    EXPECT_EQ(third.target(), "/kv_events?from=7&wait_ms=500&epoch=0a&rank=2");
}

}  // namespace
}  // namespace sluice::port
