#include "discovery/etcd_codec.h"

#include <gtest/gtest.h>

namespace sluice::discovery {
namespace {

TEST(EtcdCodecTest, Base64ReadsBackAndNothingElseDoes) {
    for (const std::string& bytes :
         {std::string(), std::string("f"), std::string("fo"), std::string("foo"),
          std::string("\0\xFF\0", 3), std::string(1'000, 'x')}) {
        EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    }
    EXPECT_EQ(to_base64("foo"), "Zm9v");
    for (const char* text :
         {"Z", "Zm9", "Zm9v=", "Z===", "====", "Zm9v Zm9", " Zm9", "Z=9v", "Zm*v"})
        EXPECT_FALSE(from_base64(text)) << text;
}

TEST(EtcdCodecTest, ARangeEndsBehindItsPrefix) {
    EXPECT_EQ(range_request("a"), R"({"key":"YQ==","range_end":"Yg=="})");
    EXPECT_EQ(range_request("a\xFF"),
              R"({"key":")" + to_base64("a\xFF") + R"(","range_end":"Yg=="})");
    EXPECT_EQ(range_request("a", 4), R"({"key":"YQ==","range_end":"Yg==","min_mod_revision":"5"})");
}

TEST(EtcdCodecTest, LeasesAreReadAsEtcdWritesThem) {
    EXPECT_EQ(grant_request(15), R"({"TTL":"15"})");
    EXPECT_EQ(*parse_grant(R"({"header":{},"ID":"7587869","TTL":"15"})"), "7587869");
    EXPECT_FALSE(parse_grant(R"({"error":"lease already exists"})"));
    EXPECT_EQ(*parse_keep_alive(R"({"result":{"header":{},"ID":"7","TTL":"15"}})"), 15);
    EXPECT_EQ(*parse_keep_alive(R"({"result":{"header":{},"ID":"7"}})"), 0) << "it has ended";
    EXPECT_FALSE(parse_keep_alive("{}"));
}

TEST(EtcdCodecTest, AWorkerReadsBack) {
    const WorkerEntry worker{"stable", "http://a:1", routing::LegPhase::kPrefill};
    EXPECT_EQ(*parse_worker_json(to_json(worker)), worker);
    EXPECT_EQ(*parse_worker_json(R"({"url":"http://a:1","pool":"stable","since":3})"),
              (WorkerEntry{"stable", "http://a:1"}));
    for (const char* text : {"", "[]", R"({"pool":"stable"})", R"({"url":"http://a:1"})",
                             R"({"url":"http://a:1","pool":7})",
                             R"({"url":"http://a:1","pool":"p","phase":"encode"})"}) {
        EXPECT_FALSE(parse_worker_json(text)) << text;
    }
}

}  // namespace
}  // namespace sluice::discovery
