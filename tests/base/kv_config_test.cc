#include "base/kv_config.h"

#include <gmock/gmock.h>

#include "base/config_rows.h"
#include "base/service_config.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kEverything = R"([kv]
dram = "2GiB"
directory = "/mnt/kv"
ca_bundle = "/etc/cache.pem"
reuse = "compatible"
force = "load"
replicas = 2
agent = "24h"
chat = "48h"
tenant_bytes = "3GiB"
start_nodes = 2
node_dram = "64MiB"
node_ssd = "0B"
[[kv.node]]
url = "redis://10.0.0.7:7301"
http = "http://10.0.0.7:7401"
[[kv.node]]
url = "rediss://cache.example:6380"
password_env = "CACHE_PASSWORD"
[[tenant]]
name = "a"
class = "agent"
kv_bytes = "1GiB"
)";

std::vector<std::string> mistakes(const std::string& text) {
    const auto config = parse_service_config(text, "f.toml");
    std::vector<std::string> lines;
    if (config) return lines;
    for (const Error& error : config.error()) lines.push_back(error.to_string());
    return lines;
}

TEST(KvConfigTest, WithoutATableEnginesKeepBlocksInMemoryAndNoNodesAreThere) {
    const KvConfig kv = default_service_config().kv;
    EXPECT_EQ(*kv.dram, 512ULL << 20U);
    EXPECT_EQ(*kv.directory, std::nullopt);
    EXPECT_EQ(*kv.ca_bundle, std::nullopt);
    EXPECT_EQ(*kv.reuse, "exact");
    EXPECT_EQ(*kv.force, "auto");
    EXPECT_EQ(*kv.replicas, 1);
    EXPECT_EQ(*kv.agent, std::chrono::hours(72));
    EXPECT_EQ(*kv.chat, std::chrono::hours(168));
    EXPECT_EQ(*kv.start_nodes, 0);
    EXPECT_TRUE(kv.nodes.empty());
}

TEST(KvConfigTest, EverySettingIsReadAndShownSoThatItReadsBackAsTheSame) {
    const auto config = parse_service_config(kEverything, "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    const KvConfig& kv = config->kv;
    EXPECT_EQ(*kv.dram, 2ULL << 30U);
    EXPECT_EQ(*kv.directory, "/mnt/kv");
    EXPECT_EQ(*kv.ca_bundle, "/etc/cache.pem");
    EXPECT_EQ(*kv.reuse, "compatible");
    EXPECT_EQ(*kv.force, "load");
    EXPECT_EQ(*kv.replicas, 2);
    EXPECT_EQ(*kv.agent, std::chrono::hours(24));
    EXPECT_EQ(*kv.chat, std::chrono::hours(48));
    EXPECT_EQ(*kv.tenant_bytes, 3ULL << 30U);
    EXPECT_EQ(*kv.start_nodes, 2);
    EXPECT_EQ(*kv.node_dram, 64ULL << 20U);
    EXPECT_EQ(*kv.node_ssd, 0U);
    ASSERT_EQ(kv.nodes.size(), 2U);
    EXPECT_EQ(*kv.nodes[0].http, "http://10.0.0.7:7401");
    EXPECT_EQ(*kv.nodes[1].url, "rediss://cache.example:6380");
    EXPECT_EQ(kv.nodes[1].url.place, "f.toml:18");
    EXPECT_EQ(*kv.nodes[1].password_env, "CACHE_PASSWORD");
    EXPECT_EQ(*kv.nodes[1].http, std::nullopt);
    EXPECT_EQ(*config->tenants[0].retention, "agent");
    EXPECT_EQ(*config->tenants[0].kv_bytes, 1ULL << 30U);

    const auto again = parse_service_config(render(*config), "g.toml");
    ASSERT_TRUE(again) << again.error()[0].to_string() << render(*config);
    const std::vector<ConfigRow> before = rows(*config);
    const std::vector<ConfigRow> after = rows(*again);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].value, after[i].value);
}

TEST(KvConfigTest, MistakesAreToldWithTheirLines) {
    EXPECT_THAT(mistakes("[kv]\nreuse = \"same\"\nforce = \"never\"\ndirectory = \"kv\"\n"
                         "agent = \"0s\"\nreplicas = 0\ndrum = \"1GiB\"\n"),
                ElementsAre(HasSubstr("f.toml:2: kv.reuse must be \"exact\" or \"compatible\""),
                            HasSubstr("f.toml:3: kv.force must be"),
                            HasSubstr("f.toml:4: kv.directory must be a path from the root"),
                            HasSubstr("f.toml:5: kv.agent must be above 0"),
                            HasSubstr("f.toml:6: kv.replicas is 0"),
                            HasSubstr("f.toml:7: unknown key 'kv.drum'; did you mean 'dram'?")));
}

TEST(KvConfigTest, ANodeIsAnAddressWithoutAPasswordAndStandsThereOnce) {
    for (const char* url : {"", "http://h:1", "redis://h", "redis://h:1/", "redis://h:1 2", "h:1"})
        EXPECT_EQ(mistakes(std::string("[[kv.node]]\nurl = \"") + url + "\"\n").size(), 1U) << url;
    for (const char* url : {"redis://h:1", "rediss://h:1", "redis+cluster://h:1,i:1"})
        EXPECT_EQ(mistakes(std::string("[[kv.node]]\nurl = \"") + url + "\"\n").size(), 0U) << url;
    EXPECT_THAT(mistakes("[[kv.node]]\nurl = \"redis://:secret@h:1\"\n"),
                ElementsAre(HasSubstr("name the variable that holds it in password_env")));
    EXPECT_THAT(
        mistakes("[[kv.node]]\nurl = \"redis://h:1\"\n[[kv.node]]\nurl = \"redis://h:1\"\n"),
        ElementsAre(HasSubstr("f.toml:4: kv.node[1].url is an earlier node's too")));
    EXPECT_EQ(mistakes("[[kv.node]]\nurl = \"redis://h:1\"\nhttp = \"h:2\"\n").size(), 1U);
}

}  // namespace
}  // namespace sluice
