#include "discovery/etcd_view.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

namespace sluice::discovery {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kPrefix = "/sluice/workers/";
const WorkerEntry kA{"stable", "http://a:1"};
const WorkerEntry kB{"stable", "http://b:1", routing::LegPhase::kDecode};

/// A store that answers as etcd's JSON gateway does.
class FakeEtcd {
public:
    void put(const std::string& name, const std::string& value) {
        keys_[kPrefix + name] = {value, ++revision_};
    }
    void put(const std::string& name, const WorkerEntry& worker) { put(name, to_json(worker)); }
    void erase(const std::string& name) {
        keys_.erase(kPrefix + name);
        ++revision_;
    }

    [[nodiscard]] std::string answer(const std::string& request) {
        const json::object asked = json::parse(request).as_object();
        EXPECT_EQ(from_base64(asked.at("key").as_string()), kPrefix);
        EXPECT_EQ(from_base64(asked.at("range_end").as_string()), "/sluice/workers0");
        full = !asked.contains("min_mod_revision");
        const std::int64_t least =
            full ? 0 : std::stoll(std::string(asked.at("min_mod_revision").as_string()));
        json::array kvs;
        for (const auto& [key, value] : keys_) {
            if (value.second < least) continue;
            kvs.push_back({{"key", to_base64(key)},
                           {"mod_revision", std::to_string(value.second)},
                           {"value", to_base64(value.first)}});
        }
        json::object body{{"header", {{"revision", std::to_string(revision_)}}}};
        if (!kvs.empty()) body["kvs"] = kvs;
        if (!keys_.empty()) body["count"] = std::to_string(keys_.size());
        return json::serialize(body);
    }

    bool full = false;  ///< The last question was for everything.

private:
    std::map<std::string, std::pair<std::string, std::int64_t>> keys_;
    std::int64_t revision_ = 1;
};

class EtcdViewTest : public testing::Test {
protected:
    /// Asks until nothing is due at once; the last set that came.
    std::optional<std::vector<WorkerEntry>> poll() {
        std::optional<std::vector<WorkerEntry>> last;
        do {
            auto set = view.on_answer(etcd.answer(view.ask(now)), now);
            EXPECT_TRUE(set.has_value());
            if (*set) last = std::move(**set);
        } while (view.due() <= now);
        now = view.due();
        return last;
    }

    FakeEtcd etcd;
    Time now{1'000s};
    EtcdView view{kPrefix, now};
};

TEST_F(EtcdViewTest, TheFirstAnswerIsEverythingAndLaterOnesWhatChanged) {
    etcd.put("a", kA);
    EXPECT_THAT(*poll(), ElementsAre(kA));
    EXPECT_TRUE(etcd.full);
    EXPECT_EQ(poll(), std::nullopt);
    EXPECT_FALSE(etcd.full);
    etcd.put("b", kB);
    EXPECT_THAT(*poll(), UnorderedElementsAre(kA, kB));
    EXPECT_FALSE(etcd.full);
}

TEST_F(EtcdViewTest, AnEmptyStoreIsAnAnswer) { EXPECT_THAT(*poll(), ElementsAre()); }

TEST_F(EtcdViewTest, ADeletionIsSeenThoughNobodyTellsOfIt) {
    etcd.put("a", kA);
    etcd.put("b", kB);
    EXPECT_THAT(*poll(), UnorderedElementsAre(kA, kB));
    etcd.erase("a");
    EXPECT_THAT(*poll(), ElementsAre(kB));
    EXPECT_TRUE(etcd.full) << "only a whole answer says which one";
    // One that goes as another comes leaves the count as it was.
    etcd.erase("b");
    etcd.put("c", kA);
    EXPECT_THAT(*poll(), ElementsAre(kA));
}

TEST_F(EtcdViewTest, WhateverWasMissedHealsWithinTheResync) {
    etcd.put("a", kA);
    EXPECT_TRUE(poll());
    etcd.put("a", kB);
    // Somebody between us and etcd ate the change.
    EXPECT_TRUE(view.on_answer(R"({"header":{"revision":"3"},"count":"1"})", now));
    std::optional<std::vector<WorkerEntry>> healed;
    const Time lost = now;
    while (!healed) healed = poll();
    EXPECT_THAT(*healed, ElementsAre(kB));
    EXPECT_LE(now - lost, EtcdView::kResync + 2 * EtcdView::kPause);
}

TEST_F(EtcdViewTest, AMinuteWithoutEtcdLosesNothing) {
    etcd.put("a", kA);
    EXPECT_TRUE(poll());
    const Time gone = now;
    while (now < gone + 60s) {
        static_cast<void>(view.ask(now));
        view.on_failure(now);
        EXPECT_LE(view.due() - now, EtcdView::kLongestPause);
        now = view.due();
    }
    EXPECT_EQ(view.silent_since(), gone);
    EXPECT_EQ(poll(), std::nullopt) << "nothing changed, so nothing is to be done";
    EXPECT_EQ(view.silent_since(), std::nullopt);
    EXPECT_TRUE(etcd.full) << "it may be another store";
}

TEST_F(EtcdViewTest, AStoreThatWasPutBackIsReadAnew) {
    for (int i = 0; i < 5; ++i) etcd.put("a", kA);
    EXPECT_TRUE(poll());
    etcd = FakeEtcd();
    etcd.put("b", kB);
    EXPECT_THAT(*poll(), ElementsAre(kB));
}

TEST_F(EtcdViewTest, AKeyThatIsNoWorkerIsLeftOutAndNamed) {
    etcd.put("a", kA);
    etcd.put("b", "certainly");
    etcd.put("c", R"({"pool":"stable","url":"http://c:1/v1"})");
    EXPECT_THAT(*poll(), ElementsAre(kA));
    EXPECT_EQ(view.rejected().size(), 2U);
    EXPECT_THAT(view.rejected().at(kPrefix + "c"), HasSubstr("url"));
    etcd.put("b", kB);
    EXPECT_THAT(*poll(), UnorderedElementsAre(kA, kB));
    EXPECT_EQ(view.rejected().size(), 1U);
}

TEST_F(EtcdViewTest, WhatIsNotEtcdIsAFailureThatChangesNothing) {
    etcd.put("a", kA);
    EXPECT_TRUE(poll());
    for (const char* text : {"", "[]", "{}", "not found", R"({"header":{"revision":"x"}})",
                             R"({"header":{"revision":"9"},"kvs":[{"key":"*"}],"count":"1"})",
                             R"({"header":{"revision":"9"},"kvs":3})",
                             R"({"error":"etcdserver: request timed out"})"}) {
        static_cast<void>(view.ask(now));
        EXPECT_FALSE(view.on_answer(text, now).has_value()) << text;
        EXPECT_TRUE(view.silent_since());
        now = view.due();
    }
    EXPECT_EQ(poll(), std::nullopt);
}

}  // namespace
}  // namespace sluice::discovery
