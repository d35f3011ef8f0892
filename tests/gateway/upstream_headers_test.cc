#include "gateway/upstream_headers.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(UpstreamHeadersTest, WhatBelongsToAConnectionOrAClientStaysHere) {
    const net::HttpHeaders client{{"Host", "here"},
                                  {"Connection", "close, X-Hop"},
                                  {"X-Hop", "1"},
                                  {"TE", "trailers"},
                                  {"Transfer-Encoding", "chunked"},
                                  {"Content-Length", "7"},
                                  {"Expect", "100-continue"},
                                  {"Authorization", "Bearer theirs"},
                                  {"Proxy-Authorization", "x"},
                                  {"X-Api-Key", "x"},
                                  {"X-Auth-Token", "x"},
                                  {"Cookie", "x"},
                                  {"OpenAI-Organization", "org"},
                                  {"x-sluice-pool", "p"},
                                  {"X-Request-Id", "theirs"},
                                  {"Accept-Encoding", "gzip"},
                                  {"Content-Type", "application/json; charset=utf-8"}};
    const net::HttpHeaders sent = request_headers_for(client, "ours", "id-1");
    EXPECT_EQ(sent.size(), 3U);
    EXPECT_EQ(sent.find("authorization"), "Bearer ours");
    EXPECT_EQ(sent.find("x-request-id"), "id-1");
    EXPECT_EQ(sent.find("content-type"), "application/json");
}

TEST(UpstreamHeadersTest, TheRestIsPassedOn) {
    const net::HttpHeaders client{{"traceparent", "00-1-2-3"},
                                  {"User-Agent", "test"},
                                  {"X-Custom", "a"},
                                  {"X-Custom", "b"},
                                  {"Connection", "keep-alive"}};
    const net::HttpHeaders sent = request_headers_for(client, "", "id");
    EXPECT_EQ(sent.find("traceparent"), "00-1-2-3");
    EXPECT_EQ(sent.find("user-agent"), "test");
    EXPECT_EQ(sent.size(), 6U);
    EXPECT_FALSE(sent.find("authorization").has_value());
}

TEST(UpstreamHeadersTest, AnAnswerKeepsItsOwnFieldsAndGetsOurs) {
    const net::HttpHeaders upstream{{"Content-Type", "text/event-stream"},
                                    {"Connection", "keep-alive, X-Hop"},
                                    {"X-Hop", "1"},
                                    {"Keep-Alive", "timeout=5"},
                                    {"Set-Cookie", "a=b"},
                                    {"Server", "uvicorn"},
                                    {"x-request-id", "theirs"},
                                    {"openai-processing-ms", "7"},
                                    {"Retry-After", "3"}};
    const net::HttpHeaders answer = answer_headers_from(upstream, "outside", "ours");
    EXPECT_EQ(answer.size(), 5U);
    EXPECT_EQ(answer.find("x-request-id"), "ours");
    EXPECT_EQ(answer.find("x-sluice-pool"), "outside");
    EXPECT_EQ(answer.find("openai-processing-ms"), "7");
    EXPECT_EQ(answer.find("retry-after"), "3");
    EXPECT_EQ(answer.find("content-type"), "text/event-stream");
}

}  // namespace
}  // namespace sluice::gateway
