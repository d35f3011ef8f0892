#include "gateway/cache_rules.h"

#include <gtest/gtest.h>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

InboundRequest request_with(const std::string& body) {
    return {.outline = *protocol::read_outline(body)};
}

const std::string kTools =
    R"({"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function"}]})";
const std::string kPlain = R"({"messages":[{"role":"user","content":"q"}],"user":"ann"})";

TEST(CacheRulesTest, TheHeaderDecidesThenToolsThenTheTenant) {
    InboundRequest tools = request_with(kTools);
    InboundRequest plain = request_with(kPlain);
    EXPECT_EQ(retention_of(tools, Retention::kNone), Retention::kAgent);
    EXPECT_EQ(retention_of(plain, Retention::kNone), Retention::kNone);
    EXPECT_EQ(retention_of(plain, Retention::kChat), Retention::kChat);
    tools.retention_asked = plain.retention_asked = Retention::kChat;
    EXPECT_EQ(retention_of(tools, Retention::kNone), Retention::kChat);
    EXPECT_EQ(retention_of(plain, Retention::kNone), Retention::kChat);
}

TEST(CacheRulesTest, AnOwnSaltIsOneTenantsUserOrSession) {
    const auto outline = *protocol::read_outline(kPlain);
    EXPECT_EQ(own_salt(PrefixShare::kTenant, "a", outline, "c"), "");
    const std::string user = own_salt(PrefixShare::kUser, "a", outline, "c");
    EXPECT_EQ(user, own_salt(PrefixShare::kUser, "a", outline, "d"));
    EXPECT_NE(user, own_salt(PrefixShare::kUser, "b", outline, "c"));
    EXPECT_NE(user, own_salt(PrefixShare::kSession, "a", outline, "c"));
    EXPECT_NE(own_salt(PrefixShare::kSession, "a", outline, "c"),
              own_salt(PrefixShare::kSession, "a", outline, "d"));
}

TEST(CacheRulesTest, AnEngineThatTakesOneSaltGetsTheNarrowestOne) {
    InboundRequest request = request_with(kPlain);
    request.salt = "a";
    EXPECT_EQ(narrowest_salt(request), "a");
    request.own_salt = "a/user/x";
    EXPECT_EQ(narrowest_salt(request), "a/user/x");
}

class CacheTermsTest : public GatewayTest {};

TEST_F(CacheTermsTest, TheWorkerIsToldTheClassAndWhereTheConversationsOwnPartBegins) {
    start({says("Paris.")});
    const std::string body =
        R"({"model":"krill","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"q"}]})";
    EXPECT_EQ(send("POST", "/v1/chat/completions", body).status, 200);
    const port::KvTerms plain = worker->requests.back().kv;
    EXPECT_EQ(plain.retention, Retention::kChat);
    const std::vector<TokenId>& ids = worker->requests.back().input_ids;
    // <｜User｜>, models/krill/reference.json
    EXPECT_EQ(ids.at(plain.own_from), 4083);
    EXPECT_GT(plain.own_from, 2U);
    EXPECT_EQ(send("POST", "/v1/chat/completions", body, {{"x-sluice-class", "agent"}}).status,
              200);
    EXPECT_EQ(worker->requests.back().kv.retention, Retention::kAgent);
    EXPECT_EQ(send("POST", "/v1/completions", R"({"model":"krill","prompt":"a"})").status, 200);
    EXPECT_EQ(worker->requests.back().kv.own_from, 0U);
}

TEST_F(CacheTermsTest, AClassThatIsNoneIsTheClientsMistake) {
    start({says("Paris.")});
    const Reply reply = send("POST", "/v1/chat/completions",
                             R"({"model":"krill","messages":[{"role":"user","content":"q"}]})",
                             {{"x-sluice-class", "forever"}});
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find(R"("param":"x-sluice-class")"), std::string::npos) << reply.body;
    EXPECT_TRUE(worker->requests.empty());
}

}  // namespace
}  // namespace sluice::gateway
