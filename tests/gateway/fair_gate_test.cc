#include "gateway/fair_gate.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/private_file.h"
#include "tests/gateway/fake_exchange.h"

namespace sluice::gateway {
namespace {

using protocol::ApiErrorCode;
using namespace std::chrono_literals;
using testing::IsEmpty;

class FairGateTest : public testing::Test {
protected:
    FairGateTest() : folder_(testing::TempDir() + "sluice-XXXXXX") {
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
        a = add("a");
        b = add("b");
    }
    ~FairGateTest() override {
        gate.reset();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    std::string add(const std::string& tenant) {
        std::array<std::uint8_t, admission::kKeyEntropyBytes> entropy{};
        entropy[0] = ++keys_made_;
        std::string text = *table_.add({.tenant = tenant}, entropy, 1);
        EXPECT_TRUE(write_private_file(folder_ + "/keys", table_.to_json()));
        return text;
    }

    void start(std::size_t places, FairGateOptions options = {}) {
        if (options.admission.bounds.requests == 0)
            options.admission.bounds = {.requests = 100, .bytes = 1'000'000, .of_tenant = 100};
        gate = std::make_unique<FairGate>(
            loop, std::make_shared<Access>(AccessRules{}, *KeyRing::load(folder_ + "/keys")),
            std::move(options));
        room = places;
        gate->attach([this] { return room; }, registry);
    }

    /// One request from its submission to its verdict and its end.
    struct Client {
        InboundRequest request;
        std::optional<AdmissionVerdict> verdict;
        std::unique_ptr<AdmissionTicket> ticket;
        [[nodiscard]] bool runs() const { return verdict && !verdict->refused; }
    };
    std::shared_ptr<Client> ask(const std::string& key, net::HttpHeaders headers = {},
                                const std::string& user = {}) {
        net::HttpRequest request{.headers = std::move(headers), .body = std::string(40, 'x')};
        if (!key.empty()) request.headers.set("Authorization", "Bearer " + key);
        auto client = std::make_shared<Client>();
        client->request.exchange = std::make_shared<FakeExchange>(std::move(request));
        client->request.deadline = 1h;
        client->request.outline.max_tokens = 10;
        client->request.outline.user = user;
        client->ticket =
            gate->admit(client->request, [at = client.get(), this](const auto& verdict) {
                EXPECT_FALSE(at->verdict);
                at->verdict = verdict;
                order.push_back(at);
            });
        return client;
    }
    void turn() { loop.run_for(1ms); }

    std::string folder_;
    admission::KeyTable table_;
    std::uint8_t keys_made_ = 0;
    std::string a;
    std::string b;
    net::EventLoop loop;
    metrics::Registry registry;
    std::optional<std::size_t> room;
    std::unique_ptr<FairGate> gate;
    std::vector<Client*> order;
};

TEST_F(FairGateTest, AsManyRunAsThereIsRoomAndTheNextComesWhenOneEnds) {
    start(2);
    const auto first = ask(a);
    const auto second = ask(a);
    const auto third = ask(a);
    turn();
    EXPECT_TRUE(first->runs() && second->runs());
    EXPECT_FALSE(third->verdict);
    EXPECT_EQ(gate->waiting(), 1U);
    first->ticket->settle(5, 5);
    first->ticket.reset();
    turn();
    EXPECT_TRUE(third->runs());
    EXPECT_EQ(gate->waiting(), 0U);
}

TEST_F(FairGateTest, TenantsTakeTurnsWhateverOneOfThemSends) {
    start(1);
    const auto running = ask(a);
    turn();
    std::vector<std::shared_ptr<Client>> flood;
    for (int i = 0; i < 20; ++i) flood.push_back(ask(a));
    const auto quiet = ask(b);
    running->ticket->settle(10, 10);
    running->ticket.reset();
    turn();
    EXPECT_TRUE(quiet->runs());
    EXPECT_FALSE(flood[0]->verdict);
}

TEST_F(FairGateTest, WhoGoesBeforeItsTurnLeavesNothing) {
    start(1);
    const auto running = ask(a);
    const auto waiting = ask(a);
    turn();
    waiting->ticket.reset();
    EXPECT_EQ(gate->waiting(), 0U);
    running->ticket.reset();
    turn();
    EXPECT_FALSE(waiting->verdict);
}

TEST_F(FairGateTest, WithoutAValidKeyNobodyIsAdmitted) {
    start(1);
    const auto stranger = ask("");
    ASSERT_TRUE(stranger->verdict && stranger->verdict->refused);
    EXPECT_EQ(stranger->verdict->refused->code, ApiErrorCode::kUnauthorized);
    EXPECT_EQ(stranger->ticket, nullptr);
}

TEST_F(FairGateTest, BeyondATenantsLimitItIsToldWhenToComeAgain) {
    FairGateOptions options;
    options.admission.tenants = {{.name = "a", .requests_per_minute = 2}};
    start(10, std::move(options));
    const auto first = ask(a);
    const auto second = ask(a);
    const auto third = ask(a);
    ASSERT_TRUE(third->verdict && third->verdict->refused);
    EXPECT_EQ(third->verdict->refused->code, ApiErrorCode::kRateLimited);
    EXPECT_GE(*third->verdict->retry_after, 29s);
    EXPECT_LE(*third->verdict->retry_after, 30s);
    const auto other = ask(b);
    turn();
    EXPECT_TRUE(other->runs());
}

TEST_F(FairGateTest, InAFullQueueTheFloodGivesWay) {
    FairGateOptions options;
    options.admission.bounds = {.requests = 2, .bytes = 1'000'000, .of_tenant = 100};
    start(0, std::move(options));
    const auto first = ask(a);
    const auto second = ask(a);
    const auto third = ask(a);
    ASSERT_TRUE(third->verdict && third->verdict->refused);
    EXPECT_EQ(third->verdict->refused->code, ApiErrorCode::kQueueFull);
    EXPECT_TRUE(third->verdict->retry_after);
    const auto other = ask(b);
    EXPECT_FALSE(other->verdict);
    ASSERT_TRUE(second->verdict && second->verdict->refused);
    EXPECT_EQ(second->verdict->refused->code, ApiErrorCode::kQueueFull);
    EXPECT_FALSE(first->verdict);
}

TEST_F(FairGateTest, APriorityIsOneOfTheTenantsOwn) {
    start(0);
    const auto wrong = ask(a, {{"x-sluice-priority", "9"}});
    ASSERT_TRUE(wrong->verdict && wrong->verdict->refused);
    EXPECT_EQ(wrong->verdict->refused->param, "x-sluice-priority");
    const auto plain = ask(a);
    const auto urgent = ask(a, {{"x-sluice-priority", "3"}});
    room.reset();
    gate->room_changed();
    turn();
    EXPECT_EQ(order.back(), plain.get());
    EXPECT_EQ(order[order.size() - 2], urgent.get());
}

TEST_F(FairGateTest, PrefixesAreSharedByTenantUserOrSessionAsConfigured) {
    FairGateOptions options;
    options.caches = {{"b", {.share = PrefixShare::kUser, .retention = Retention::kNone}}};
    start(10, std::move(options));
    const auto verdict = [&](const std::string& key, const std::string& user) {
        const auto client = ask(key, {}, user);
        turn();
        return *client->verdict;
    };
    // A tenant shares all with itself,
    EXPECT_EQ(verdict(a, "ann").salt, verdict(a, "bob").salt);
    EXPECT_EQ(verdict(a, "ann").own_salt, "");
    EXPECT_EQ(verdict(a, "ann").retention, Retention::kChat);
    // or tools and system text alone, and nothing with another one.
    EXPECT_NE(verdict(a, "ann").salt, verdict(b, "ann").salt);
    EXPECT_EQ(verdict(b, "ann").salt, verdict(b, "bob").salt);
    EXPECT_EQ(verdict(b, "ann").own_salt, verdict(b, "ann").own_salt);
    EXPECT_NE(verdict(b, "ann").own_salt, verdict(b, "bob").own_salt);
    EXPECT_EQ(verdict(b, "ann").retention, Retention::kNone);
}

}  // namespace
}  // namespace sluice::gateway
