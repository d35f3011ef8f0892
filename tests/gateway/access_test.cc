#include "gateway/access.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/private_file.h"

namespace sluice::gateway {
namespace {

using protocol::ApiErrorCode;
using testing::HasSubstr;
using testing::Not;

constexpr HostPort kLoopback{"127.0.0.1", 8080};
constexpr HostPort kEverywhere{"0.0.0.0", 8080};

class AccessTest : public testing::Test {
protected:
    AccessTest() : folder_(testing::TempDir() + "sluice-XXXXXX") {
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    }
    ~AccessTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    [[nodiscard]] std::string file() const { return folder_ + "/keys.json"; }

    /// Adds a key to the file and returns its text.
    std::string add(const admission::KeyWish& wish) {
        std::array<std::uint8_t, admission::kKeyEntropyBytes> entropy{};
        entropy[0] = ++keys_made_;
        std::string text = *table_.add(wish, entropy, 1);
        EXPECT_TRUE(write_private_file(file(), table_.to_json()));
        return text;
    }
    void revoke(std::string_view text) {
        EXPECT_TRUE(table_.revoke(*admission::key_id(text), 2));
        EXPECT_TRUE(write_private_file(file(), table_.to_json()));
    }

    [[nodiscard]] Access access(AccessRules rules) const { return {rules, *KeyRing::load(file())}; }
    static net::HttpRequest with(std::string_view key) {
        net::HttpRequest request;
        if (!key.empty()) request.headers.set("Authorization", "Bearer " + std::string(key));
        return request;
    }

    std::string folder_;
    admission::KeyTable table_;
    std::uint8_t keys_made_ = 0;
};

TEST_F(AccessTest, WithoutAnyKeyALoopbackServiceTrustsWhoeverAsks) {
    const Access open = access({});
    EXPECT_TRUE(open.client(with("")));
    // The clients' libraries always send something.
    EXPECT_EQ(open.client(with("sk-anything"))->tenant, "default");
    EXPECT_TRUE(open.admin(with("")));
}

TEST_F(AccessTest, AWebPageIsNoAdmin) {
    net::HttpRequest request = with("");
    request.method = "POST";
    EXPECT_TRUE(access({}).admin(request));
    request.headers.set("Origin", "http://page");
    EXPECT_FALSE(access({}).admin(request));
    request.method = "GET";
    EXPECT_TRUE(access({}).admin(request));
}

TEST_F(AccessTest, FromTheFirstKeyOnEverybodyNeedsOne) {
    const std::string key = add({.tenant = "acme"});
    Access closed = access({});
    EXPECT_EQ(closed.client(with(key))->tenant, "acme");
    EXPECT_FALSE(closed.client(with(key))->admin);
    EXPECT_EQ(closed.client(with("")).error().code, ApiErrorCode::kUnauthorized);
    EXPECT_EQ(closed.client(with("sk-anything")).error().code, ApiErrorCode::kUnauthorized);
    net::HttpRequest other;
    other.headers.set("x-api-key", key);
    EXPECT_EQ(closed.client(other)->tenant, "acme");
    net::HttpRequest lower;
    lower.headers.set("authorization", "bearer  " + key);
    EXPECT_EQ(closed.client(lower)->tenant, "acme");
    net::HttpRequest basic;
    basic.headers.set("authorization", "Basic " + key);
    EXPECT_FALSE(closed.client(basic));
}

TEST_F(AccessTest, AnErrorTellsNothingOfTheKeyThatWasShown) {
    const std::string key = add({.tenant = "acme"});
    revoke(key);
    const auto refused = access({}).client(with(key));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, Not(HasSubstr(key.substr(10, 16))));
    EXPECT_EQ(refused.error().message, access({}).client(with(key + "0")).error().message);
}

TEST_F(AccessTest, AnOpenServiceTakesAnybodyAndKeysOnlyNameTenants) {
    const std::string key = add({.tenant = "acme"});
    const Access open = access({.open = true});
    EXPECT_EQ(open.client(with(""))->tenant, "default");
    EXPECT_FALSE(open.client(with(""))->admin);
    EXPECT_EQ(open.client(with("sk-anything"))->tenant, "default");
    EXPECT_EQ(open.client(with(key))->tenant, "acme");
    revoke(key);
    EXPECT_FALSE(access({.open = true}).client(with(key)));
}

TEST_F(AccessTest, AnAdminAddressThatOthersReachTakesAdminsOnly) {
    const std::string user = add({.tenant = "acme"});
    const std::string admin = add({.tenant = "ops", .admin = true});
    const Access closed = access({.admins_need_keys = true});
    EXPECT_FALSE(closed.admin(with("")));
    EXPECT_FALSE(closed.admin(with(user)));
    EXPECT_TRUE(closed.admin(with(admin)));
}

TEST_F(AccessTest, KeysAreReadAgainAndAFileThatIsGoneOrBrokenChangesNothing) {
    const std::string first = add({.tenant = "acme"});
    Access closed = access({});
    const std::string second = add({.tenant = "b"});
    EXPECT_FALSE(closed.client(with(second)));
    closed.keys().refresh();
    EXPECT_TRUE(closed.client(with(second)));
    revoke(first);
    closed.keys().refresh();
    EXPECT_FALSE(closed.client(with(first)));

    ASSERT_TRUE(write_private_file(file(), "{"));
    closed.keys().refresh();
    EXPECT_TRUE(closed.client(with(second)));
    std::filesystem::remove(file());
    closed.keys().refresh();
    EXPECT_TRUE(closed.client(with(second)));
    EXPECT_FALSE(closed.client(with("")));
}

TEST_F(AccessTest, AServiceThatOthersReachNeedsAKeyOrAWord) {
    const auto none = *KeyRing::load(file());
    EXPECT_TRUE(access_rules(kLoopback, kLoopback, false, none));
    const auto refused = access_rules(kEverywhere, kLoopback, false, none);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("sluice ctl keys add"));
    EXPECT_TRUE(access_rules(kEverywhere, kLoopback, true, none)->open);
    // The word opens the client address alone.
    EXPECT_FALSE(access_rules(kEverywhere, kEverywhere, true, none));

    const std::string user = add({.tenant = "acme"});
    EXPECT_TRUE(access_rules(kEverywhere, kLoopback, false, *KeyRing::load(file())));
    EXPECT_FALSE(access_rules(kEverywhere, kEverywhere, false, *KeyRing::load(file())));
    const std::string admin = add({.tenant = "ops", .admin = true});
    const auto rules = access_rules(kEverywhere, kEverywhere, false, *KeyRing::load(file()));
    ASSERT_TRUE(rules);
    EXPECT_TRUE(rules->clients_need_keys && rules->admins_need_keys);
    revoke(admin);
    EXPECT_FALSE(access_rules(kEverywhere, kEverywhere, false, *KeyRing::load(file())));
}

TEST_F(AccessTest, AnEmptyRingOfAnExposedServiceOpensToNobody) {
    EXPECT_FALSE(access({.clients_need_keys = true}).client(with("")));
    EXPECT_FALSE(access({.clients_need_keys = true}).client(with("sk-anything")));
}

TEST_F(AccessTest, APoolThatCanNotKeepTenantsApartServesOne) {
    const std::vector<std::string> pools{"outside"};
    const auto allowed = [&](bool open) {
        return check_isolation(pools, open, *KeyRing::load(file())).has_value();
    };
    EXPECT_TRUE(allowed(false)) << "without keys everybody is one tenant";
    add({.tenant = "a"});
    EXPECT_TRUE(allowed(false));
    EXPECT_FALSE(allowed(true)) << "who has no key is another one";
    add({.tenant = "a"});
    EXPECT_TRUE(allowed(false));
    add({.tenant = "b"});
    EXPECT_FALSE(allowed(false));
    EXPECT_TRUE(check_isolation({}, true, *KeyRing::load(file())).has_value());
}

}  // namespace
}  // namespace sluice::gateway
