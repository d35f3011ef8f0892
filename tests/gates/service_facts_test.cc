#include "gates/service_facts.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/certificates.h"

namespace sluice::gates {
namespace {

using net::testing::Certificates;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Optional;

ServiceFacts facts_of(const std::string& text) {
    const auto config = parse_service_config(text, "s.toml");
    EXPECT_TRUE(config) << (config ? "" : config.error().front().to_string());
    return config ? collect_service_facts(*config) : ServiceFacts{};
}

TEST(ServiceFactsTest, KeysAreLookedForInTheEnvironment) {
    const std::string pool =
        "[[pool]]\nname = \"p\"\nengine = \"openai\"\nurl = \"http://127.0.0.1:1/v1\"\n";
    EXPECT_THAT(facts_of(pool + "api_key_env = \"SLUICE_TEST_NO_SUCH_KEY\"\n").missing_variables,
                ElementsAre("SLUICE_TEST_NO_SUCH_KEY"));
    EXPECT_THAT(facts_of(pool + "api_key_env = \"PATH\"\n").missing_variables, IsEmpty());
    EXPECT_THAT(facts_of(pool).missing_variables, IsEmpty());
}

TEST(ServiceFactsTest, AModelMustBeReadable) {
    EXPECT_THAT(facts_of("[[pool]]\nname = \"p\"\nmodel = \"/nowhere/m.gguf\"\n").broken_files,
                ElementsAre(Key("/nowhere/m.gguf")));
    EXPECT_THAT(facts_of("[[pool]]\nname = \"p\"\nmodel = \"/dev/null\"\n").broken_files,
                IsEmpty());
    EXPECT_THAT(facts_of("").broken_files, IsEmpty());
}

TEST(ServiceFactsTest, ACertificateIsLoadedAndItsEndIsKnown) {
    Certificates certificates;
    certificates.make("server", {.valid_for = std::chrono::hours(24 * 30 + 1)});
    const auto tls = [&](const std::string& key) {
        return "[gateway]\ntls_certificate = \"" + certificates.certificate("server") +
               "\"\ntls_key = \"" + key + "\"\n";
    };
    const ServiceFacts good = facts_of(tls(certificates.key("server")));
    EXPECT_THAT(good.broken_files, IsEmpty());
    EXPECT_THAT(good.certificate_days, Optional(30));

    certificates.make("other");
    EXPECT_THAT(facts_of(tls(certificates.key("other"))).broken_files,
                ElementsAre(Key(certificates.key("other"))));
    certificates.make("server", {.valid_for = -std::chrono::hours(1)});
    EXPECT_THAT(facts_of(tls(certificates.key("server"))).certificate_days, Optional(-1));
}

TEST(ServiceFactsTest, AnAuthorityThatIsNoneIsFound) {
    const Certificates certificates;
    EXPECT_THAT(
        facts_of("[gateway]\nca_bundle = \"" + certificates.ca_file() + "\"\n").broken_files,
        IsEmpty());
    EXPECT_THAT(facts_of("[gateway]\nca_bundle = \"/dev/null\"\n").broken_files,
                ElementsAre(Key("/dev/null")));
}

TEST(ServiceFactsTest, RoomIsThatOfTheDiskTheFolderWillBeOn) {
    const std::string folder = testing::TempDir() + "sluice-not-there/records";
    const auto room = facts_of("[record]\npath = \"" + folder + "\"\n").record_room_bytes;
    const auto disk = std::filesystem::space(testing::TempDir());
    ASSERT_TRUE(room.has_value());
    EXPECT_LE(*room, disk.capacity);
    EXPECT_GT(*room, 0U);
    EXPECT_EQ(facts_of("").record_room_bytes, std::nullopt);
}

}  // namespace
}  // namespace sluice::gates
