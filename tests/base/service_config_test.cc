#include "base/service_config.h"

#include "base/config_rows.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> mistakes(std::string_view text) {
    const auto config = parse_service_config(text, "f.toml");
    std::vector<std::string> lines;
    if (config) return lines;
    for (const Error& error : config.error()) lines.push_back(error.to_string());
    return lines;
}

TEST(ServiceConfigTest, AnEmptyFileServesKrillFromOneWorker) {
    const ServiceConfig config = default_service_config();
    EXPECT_EQ(to_string(*config.gateway.listen), "127.0.0.1:8080");
    EXPECT_EQ(to_string(*config.gateway.admin), "127.0.0.1:8081");
    ASSERT_EQ(config.pools.size(), 1U);
    EXPECT_EQ(*config.pools[0].native.model, "krill");
    EXPECT_EQ(*config.pools[0].native.workers, 1);
    EXPECT_EQ(*config.pools[0].native.threads, std::nullopt);
    EXPECT_EQ(*config.pools[0].native.step_time, std::chrono::milliseconds(50));
    EXPECT_FALSE(*config.pools[0].native.thinking);
    EXPECT_EQ(*config.plan.stable, "stable");
    EXPECT_EQ(config.gateway.listen.place, "default");
}

TEST(ServiceConfigTest, AValueOfTheFileHasItsLineAsPlace) {
    const auto config = parse_service_config(
        "[gateway]\nlisten = \"0.0.0.0:0\"\n[[pool]]\nname = \"a\"\nworkers = 2\nthreads = 3\n"
        "thinking = true\nprice.hour = 1.20\nmodel = \"m.gguf\"\nstep_time = "
        "\"20ms\"\n[plan]\nstable = \"a\"\n",
        "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    EXPECT_EQ(config->gateway.listen->port, 0);
    EXPECT_EQ(config->gateway.listen.place, "f.toml:2");
    EXPECT_EQ(config->gateway.admin.place, "default");
    EXPECT_EQ(*config->pools[0].native.threads, 3);
    EXPECT_EQ(*config->pools[0].price_hour, 1.2);
    EXPECT_EQ(config->pools[0].price_hour.place, "f.toml:8");
    EXPECT_TRUE(*config->pools[0].native.thinking);
    EXPECT_EQ(*config->pools[0].native.step_time, std::chrono::milliseconds(20));
    EXPECT_EQ(*config->plan.stable, "a");
}

TEST(ServiceConfigTest, WhatIsShownReadsBackAsTheSame) {
    const auto config = parse_service_config(
        "[gateway]\nlisten = \"[::1]:0\"\n[[pool]]\nname = \"a\"\nmodel = 'C:\\x \"y\".gguf'\n"
        "[[pool]]\nname = \"b\"\nthreads = 2\n[plan]\nstable = \"b\"\n",
        "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    const std::string shown = render(*config);
    const auto again = parse_service_config(shown, "g.toml");
    ASSERT_TRUE(again) << again.error()[0].to_string() << shown;
    const std::vector<ConfigRow> before = rows(*config);
    const std::vector<ConfigRow> after = rows(*again);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].value, after[i].value);
    EXPECT_THAT(shown, HasSubstr("# f.toml:2: "));
    EXPECT_THAT(shown, HasSubstr("# default: "));
}

TEST(ServiceConfigTest, ASplitHasBothKindsAndNoOthers) {
    const auto config =
        parse_service_config("[[pool]]\nprefill = 1\ndecode = 2\ndp = 2\n", "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    EXPECT_TRUE(config->pools[0].native.is_split());
    EXPECT_EQ(config->pools[0].native.processes(), 3);
    EXPECT_EQ(*config->pools[0].native.dp, 2);
    ASSERT_TRUE(parse_service_config(render(*config), "g.toml").has_value()) << render(*config);
    EXPECT_THAT(mistakes("[[pool]]\nprefill = 1\n"),
                ElementsAre(HasSubstr("f.toml:2: pool[0].prefill needs both")));
    EXPECT_THAT(mistakes("[[pool]]\ndecode = 1\n"),
                ElementsAre(HasSubstr("f.toml:2: pool[0].decode needs both")));
    EXPECT_THAT(mistakes("[[pool]]\nworkers = 2\nprefill = 1\ndecode = 1\n"),
                ElementsAre(HasSubstr("f.toml:2: pool[0].workers can't stand beside")));
    EXPECT_GE(mistakes("[[pool]]\ndp = 0\n").size(), 1U);
}

TEST(ServiceConfigTest, ANativePoolMayHaveEnginesThatRunAlready) {
    const auto config = parse_service_config(
        "[[pool]]\nurls = [\"http://a:1\", \"decode=http://b:2\"]\n", "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    EXPECT_EQ(config->pools[0].native.processes(), 0);
    EXPECT_EQ(config->pools[0].native.urls->size(), 2U);
    ASSERT_TRUE(parse_service_config(render(*config), "g.toml").has_value()) << render(*config);
    for (const char* line : {"urls = [\"http://a:1/v1\"]", "urls = [\"a:1\"]",
                             "urls = [\"fill=http://a:1\"]", "urls = [\"http://a:1\"]\nworkers = 2",
                             "urls = [\"http://a:1\"]\nprefill = 1\ndecode = 1"})
        EXPECT_GE(mistakes(std::string("[[pool]]\n") + line + "\n").size(), 1U) << line;
}

TEST(ServiceConfigTest, AllMistakesAreToldAtOnceInTheOrderOfTheFile) {
    EXPECT_THAT(mistakes("[gatewy]\nx = 1\n[[pool]]\nworkers = 0\nwokers = 2\n"),
                ElementsAre("f.toml:1: unknown key 'gatewy'; did you mean 'gateway'?",
                            "f.toml:4: pool[0].workers is 0, but must be from 1 to 64",
                            "f.toml:5: unknown key 'pool[0].wokers'; did you mean 'workers'?"));
}

TEST(ServiceConfigTest, APassThroughPoolHasAddressesAndNoEngines) {
    const auto config = parse_service_config(
        "[[pool]]\nname = \"a\"\nengine = \"vllm\"\nurls = [\"http://h:1/v1\", \"http://i/v1\"]\n"
        "api_key_env = \"KEY\"\nmodel = \"m\"\nupstream_model = \"org/m\"\nmax_concurrency = 8\n"
        "usage = \"as_asked\"\nstall_timeout = \"5s\"\nprice.hour = 2\n",
        "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    const PoolConfig& pool = config->pools[0];
    EXPECT_FALSE(pool.is_native());
    EXPECT_THAT(*pool.upstream.urls, ElementsAre("http://h:1/v1", "http://i/v1"));
    EXPECT_EQ(*pool.upstream.upstream_model, "org/m");
    EXPECT_EQ(*pool.upstream.max_concurrency, 8);
    EXPECT_EQ(*pool.upstream.stall_timeout, std::chrono::seconds(5));
    EXPECT_EQ(*pool.upstream.first_token_timeout, std::chrono::seconds(120));
    EXPECT_EQ(pool.upstream.urls.place, "f.toml:4");
    const auto again = parse_service_config(render(*config), "g.toml");
    ASSERT_TRUE(again) << again.error()[0].to_string() << render(*config);
    EXPECT_EQ(rows(*again).size(), rows(*config).size());

    const auto one =
        parse_service_config("[[pool]]\nengine = \"openai\"\nurl = \"https://h/v1\"\n", "f.toml");
    ASSERT_TRUE(one) << one.error()[0].to_string();
    EXPECT_THAT(*one->pools[0].upstream.urls, ElementsAre("https://h/v1"));
    EXPECT_EQ(one->pools[0].upstream.urls.place, "f.toml:3");
    ASSERT_TRUE(parse_service_config(render(*one), "g.toml").has_value()) << render(*one);
}

TEST(ServiceConfigTest, MistakesOfAPassThroughPoolAreTold) {
    EXPECT_THAT(mistakes("[[pool]]\nengine = \"openai\"\n"), ElementsAre(HasSubstr("has no url")));
    EXPECT_THAT(mistakes("[[pool]]\nengine = \"opnai\"\n"),
                ElementsAre(HasSubstr("did you mean 'openai'?")));
    const std::string good = "[[pool]]\nengine = \"openai\"\n";
    for (const char* line :
         {"url = \"h:80\"", "url = \"http://\"", "url = \"ftp://h\"", "url = \"http://h/v1/\"",
          "url = \"http://h/v1?x=1\"", "urls = [3]", "urls = \"http://h\"",
          "url = \"http://h/v1\"\nusage = \"never\"", "url = \"http://h/v1\"\nworkers = 2",
          "url = \"http://h/v1\"\nstall_timeout = \"0s\"",
          "url = \"http://h/v1\"\nurls = [\"http://i/v1\"]"}) {
        EXPECT_GE(mistakes(good + line + "\n").size(), 1U) << line;
    }
    EXPECT_GE(mistakes("[[pool]]\nurl = \"http://h/v1\"\n").size(), 1U);
}

TEST(ServiceConfigTest, APoolKeepsTenantsApartOrSaysInWordsThatItDoesNot) {
    const auto of = [](const std::string& engine, const std::string& more = "") {
        return mistakes(
            "[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"b\"\n[[pool]]\nengine = \"" + engine +
            "\"\n" + (engine == "native" ? "" : "url = \"http://h/v1\"\n") + more);
    };
    EXPECT_THAT(of("openai"),
                ElementsAre(HasSubstr("f.toml:6: pool[0].engine has no way to keep")));
    EXPECT_THAT(of("llama.cpp"), ElementsAre(HasSubstr("2 tenants apart")));
    for (const char* engine : {"native", "vllm", "sglang"}) EXPECT_THAT(of(engine), ElementsAre());
    EXPECT_THAT(of("openai", "shared_cache = \"tenants may share\"\n"), ElementsAre());
    EXPECT_THAT(of("vllm", "shared_cache = \"yes\"\n"),
                ElementsAre(HasSubstr("must be left out, or say \"tenants may share\"")));
    // One tenant shares with nobody.
    EXPECT_EQ(mistakes("[[tenant]]\nname = \"a\"\n[[pool]]\nengine = \"openai\"\n"
                       "url = \"http://h/v1\"\n")
                  .size(),
              0U);
}

TEST(ServiceConfigTest, EtcdIsAListOfAddresses) {
    const auto config = parse_service_config(
        "[discovery]\netcd = [\"http://a:2379\", \"https://b:2379\"]\n", "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    EXPECT_THAT(*config->discovery.etcd, ElementsAre("http://a:2379", "https://b:2379"));
    EXPECT_EQ(*config->discovery.prefix, "/sluice/workers/");
    EXPECT_THAT(mistakes("[discovery]\netcd = [\"a:2379\"]\n"),
                ElementsAre(HasSubstr("f.toml:2: discovery.etcd is not an address")));
    EXPECT_EQ(mistakes("[discovery]\nprefix = \"\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[discovery]\nectd = []\n").size(), 1U);
}

TEST(ServiceConfigTest, APlanNamesAPool) {
    EXPECT_THAT(mistakes("[[pool]]\nname = \"blue\"\n[plan]\nstable = \"bule\"\n"),
                ElementsAre("f.toml:4: plan.stable names no pool; did you mean 'blue'?"));
    EXPECT_THAT(mistakes("[[pool]]\nname = \"a\"\n[[pool]]\nname = \"b\"\n"),
                ElementsAre(HasSubstr("plan.stable must name the pool that answers")));
    EXPECT_THAT(
        mistakes("[[pool]]\nname = \"a\"\n[[pool]]\nname = \"a\"\n[plan]\nstable = \"a\"\n"),
        ElementsAre("f.toml:4: pool[1].name is used by an earlier pool"));
}

TEST(ServiceConfigTest, AddressesAndNamesAreChecked) {
    EXPECT_EQ(mistakes("[gateway]\nlisten = \"8080\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\nlisten = \"127.0.0.1:8081\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\nlisten = \"h:0\"\nadmin = \"h:0\"\n").size(), 0U);
    EXPECT_EQ(mistakes("[[pool]]\nname = \"A B\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[[pool]]\nmodel = \"a\\nb\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[[pool]]\nstep_time = \"0s\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[[pool]]\nprice.hour = -1\nprice.minute = 1\n").size(), 2U);
    EXPECT_EQ(mistakes("pool = 1\nplan = 2\ngateway = 3\n").size(), 3U);
}

TEST(ServiceConfigTest, TenantsHaveLimitsAndNamesOfTheirOwn) {
    const auto config = parse_service_config(
        "[[tenant]]\nname = \"acme\"\nrequests_per_minute = 600\nweight = 2\nshare = \"user\"\n"
        "[[tenant]]\nname = \"b\"\n",
        "f.toml");
    ASSERT_TRUE(config) << config.error()[0].to_string();
    ASSERT_EQ(config->tenants.size(), 2U);
    EXPECT_EQ(*config->tenants[0].requests_per_minute, 600);
    EXPECT_EQ(*config->tenants[0].weight, 2.0);
    EXPECT_EQ(*config->tenants[0].share, "user");
    EXPECT_EQ(*config->tenants[1].share, "tenant");
    EXPECT_EQ(*config->tenants[1].concurrency, 0);
    EXPECT_EQ(*config->tenants[1].retention, "chat");
    EXPECT_EQ(*config->tenants[1].kv_bytes, 0U);
    EXPECT_TRUE(parse_service_config(render(*config), "g.toml"));
    EXPECT_THAT(mistakes("[[tenant]]\n"), ElementsAre(HasSubstr("tenant[0].name must be 1 to 64")));
    EXPECT_THAT(mistakes("[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"a\"\nweight = 0\n"
                         "priority = 9\nshare = \"all\"\nclass = \"long\"\n"),
                ElementsAre("f.toml:4: tenant[1].name is used by an earlier tenant",
                            "f.toml:5: tenant[1].weight must be above 0",
                            HasSubstr("f.toml:6: tenant[1].priority is 9"),
                            HasSubstr("f.toml:7: tenant[1].share must be"),
                            HasSubstr("f.toml:8: tenant[1].class must be")));
}

TEST(ServiceConfigTest, OpeningAServiceToAnyoneTakesTheWholeSentence) {
    EXPECT_THAT(
        mistakes("[gateway]\nopen = \"yes\"\n"),
        ElementsAre("f.toml:2: gateway.open must be left out, or say \"anyone may use this\""));
    EXPECT_EQ(mistakes("[gateway]\nopen = true\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\nopen = \"anyone may use this\"\n").size(), 0U);
    EXPECT_EQ(mistakes("[gateway]\nopen = \"\"\n").size(), 0U);
}

TEST(ServiceConfigTest, ACertificateNeedsItsKey) {
    EXPECT_EQ(mistakes("[gateway]\ntls_key = \"k.pem\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\ntls_certificate = \"c.pem\"\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\ntls_admin = true\n").size(), 1U);
    EXPECT_EQ(mistakes("[gateway]\ntls_key = \"k.pem\"\ntls_certificate = \"c.pem\"\n").size(), 0U);
}

}  // namespace
}  // namespace sluice
