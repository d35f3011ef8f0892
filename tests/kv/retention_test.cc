#include "kv/retention.h"

namespace sluice::kv {
namespace {

using namespace std::chrono_literals;

TEST(RetentionTest, AgentsForThreeDaysAndPeopleForAWeek) {
    const RetentionTimes times;
    EXPECT_EQ(times.of(Retention::kAgent), 72h);
    EXPECT_EQ(times.of(Retention::kChat), 168h);
    EXPECT_EQ(times.of(Retention::kNone), 0h);
    EXPECT_EQ(times.end(Retention::kAgent, WallTime(1h)), WallTime(73h));
}

TEST(RetentionTest, ReadsWhatItWrites) {
    const auto times = parse_retention_times("chat=90m,agent=5s");
    ASSERT_TRUE(times) << times.error().to_string();
    EXPECT_EQ(times->agent, 5s);
    EXPECT_EQ(times->chat, 90min);
    EXPECT_EQ(parse_retention_times(to_string(*times)), *times);
    EXPECT_EQ(parse_retention_times(to_string(RetentionTimes{})), RetentionTimes{});
}

TEST(RetentionTest, AClassThatIsNotNamedKeepsItsDefault) {
    EXPECT_EQ(parse_retention_times("agent=1h")->chat, 168h);
}

TEST(RetentionTest, RefusesWhatIsNoRetention) {
    for (const char* text :
         {"", ",", "agent", "agent=", "agent=1h,", "none=1h", "robot=1h", "agent=0s", "agent=500ms",
          "agent=9000h", "agent=-1h", "chat=1h agent=1h"})
        EXPECT_FALSE(parse_retention_times(text)) << text;
}

}  // namespace
}  // namespace sluice::kv
