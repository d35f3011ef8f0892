#include "discovery/worker_entry.h"

#include <gtest/gtest.h>

#include "base/discovery_limits.h"

namespace sluice::discovery {
namespace {

using routing::LegPhase;

TEST(WorkerEntryTest, AFlagNamesPoolAndPhaseOrLeavesThemOut) {
    EXPECT_EQ(*parse_worker("http://h:1", "stable"), (WorkerEntry{"stable", "http://h:1"}));
    EXPECT_EQ(*parse_worker("b=http://h:1", "stable"), (WorkerEntry{"b", "http://h:1"}));
    const WorkerEntry prefill{"b", "http://h:1", LegPhase::kPrefill};
    EXPECT_EQ(*parse_worker("b/prefill=http://h:1", "stable"), prefill);
    EXPECT_EQ(*parse_worker(to_text(prefill), "stable"), prefill);
    EXPECT_EQ(to_text({"b", "http://h:1"}), "b=http://h:1");
}

TEST(WorkerEntryTest, WhatIsNoPhaseIsTold) {
    const auto wrong = parse_worker("b/fill=http://h:1", "stable");
    ASSERT_FALSE(wrong.has_value());
    EXPECT_NE(wrong.error().message().find("full, prefill or decode"), std::string::npos);
    EXPECT_FALSE(parse_phase("encode").has_value());
    EXPECT_FALSE(parse_phase("").has_value());
}

TEST(WorkerEntryTest, AWorkersAddressIsAnAuthorityAndNothingElse) {
    for (const char* url : {"http://127.0.0.1:40001", "https://worker-7", "http://[::1]:9"})
        EXPECT_TRUE(check_worker_url(url).has_value()) << url;
    for (const char* url : {"", "h:1", "ftp://h:1", "http://", "http://h:1/", "http://h:1/v1",
                            "http://h:1?x", "http://user@h:1", "http://h:1 ", "http://h:1\n"}) {
        EXPECT_FALSE(check_worker_url(url).has_value()) << url;
    }
    EXPECT_FALSE(
        check_worker_url("http://" + std::string(limits::kWorkerUrlBytes, 'h')).has_value());
}

}  // namespace
}  // namespace sluice::discovery
