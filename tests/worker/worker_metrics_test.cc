#include "worker/worker_metrics.h"

#include <gmock/gmock.h>

namespace sluice::worker {
namespace {

TEST(WorkerMetricsTest, GuessesAreCountedByWhatBecameOfThemAndByWhoGuessed) {
    WorkerMetrics metrics;
    metrics.on_step({.drafted = 7, .accepted = 4, .mtp_drafted = 3, .mtp_accepted = 1});
    metrics.on_step({.drafted = 2, .accepted = 2});
    net::EventLoop loop;
    KvCache cache(loop, {});
    const std::string text = metrics.text({}, 0, cache);
    for (const char* line : {
             "sluice_draft_tokens_total{result=\"accepted\"} 6",
             "sluice_draft_tokens_total{result=\"rejected\"} 3",
             "sluice_mtp_draft_tokens_total{result=\"accepted\"} 1",
             "sluice_mtp_draft_tokens_total{result=\"rejected\"} 2",
         }) {
        EXPECT_THAT(text, testing::HasSubstr(line));
    }
}

}  // namespace
}  // namespace sluice::worker
