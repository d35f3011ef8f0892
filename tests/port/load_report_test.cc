#include "port/load_report.h"

namespace sluice::port {
namespace {

TEST(LoadReportTest, ComesBackEqual) {
    for (const EngineState state :
         {EngineState::kLoading, EngineState::kReady, EngineState::kStopping}) {
        const LoadReport report{
            .state = state,
            .running = 3,
            .waiting = 17,
            .kv_used_share = 0.1F,
            .computed_tokens = 1'000'000,
            .ranks = {{.running = 1}, {.running = 2, .waiting = 17, .computed_tokens = 5}},
            .pid = 4711,
            .kv_epoch = 9,
            .kv_node_token_ns = 3'300,
            .kv_peer_token_ns = 4'000'000'000};
        EXPECT_EQ(parse_load_report(to_json(report)), report);
    }
}

TEST(LoadReportTest, AStateThatIsNoneIsAnError) {
    for (const char* json :
         {"{}", R"({"state":"tired"})", R"({"state":"ready","running":-1})",
          R"({"state":"ready","kv_used_share":1.5})", R"({"state":"ready","ranks":[7]})",
          R"({"state":"ready","ranks":[{"waiting":-1}]})"}) {
        EXPECT_FALSE(parse_load_report(json).has_value()) << json;
    }
}

}  // namespace
}  // namespace sluice::port
