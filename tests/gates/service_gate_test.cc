#include "gates/service_gate.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "base/config.h"
#include "tests/places.h"

namespace sluice::gates {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A configuration and its plan, whether or not a service carries plans out yet.
ServiceConfig configured(const std::string& text, const std::string& plan = "") {
    auto config = parse_service_config(text, "s.toml");
    EXPECT_TRUE(config) << (config ? "" : config.error().front().to_string());
    if (!config || plan.empty()) return config.value_or(default_service_config());
    const auto document = config::Document::parse(plan, "plan.toml");
    EXPECT_TRUE(document);
    config->plan = read_plan_config(document->root().table("plan"));
    EXPECT_THAT(document->errors(), IsEmpty());
    return *config;
}

Owners owned(const std::string& rows = "") {
    auto owners =
        parse_owners("owner = \"on-call\"\n" + rows, "o.toml", {"service", "stable", "candidate"});
    EXPECT_TRUE(owners) << (owners ? "" : owners.error().front().to_string());
    return owners.value_or(Owners{});
}

/// What is said of one failure; fails the test if nothing is.
ServiceItem item(const ServiceReport& report, std::string_view name,
                 std::string_view subject = "service") {
    for (const ServiceItem& each : report.failures)
        if (text_of(each.mode.failure).name == name && each.mode.subject == subject) return each;
    ADD_FAILURE() << "nothing of " << name << " of " << subject;
    return {};
}

std::vector<std::string> subjects_of(const ServiceReport& report, std::string_view name) {
    std::vector<std::string> subjects;
    for (const ServiceItem& each : report.failures)
        if (text_of(each.mode.failure).name == name) subjects.push_back(each.mode.subject);
    return subjects;
}

Verdict verdict(const ServiceConfig& config, std::string_view name,
                std::string_view subject = "service", const ServiceFacts& facts = {},
                const std::string& rows = "") {
    const Owners owners = owned(rows);
    return item(check_service(config, facts, owners), name, subject).verdict;
}

const std::string kTwoPools = R"(
[[pool]]
name = "stable"
workers = 2
price.hour = 1.0
[[pool]]
name = "candidate"
engine = "vllm"
url = "http://127.0.0.1:8000/v1"
max_concurrency = 8
price.hour = 1.0
[plan]
stable = "stable"
)";

const std::string kTrial = R"(
[plan]
stable = "stable"
[[plan.split]]
pool = "candidate"
weight = 0.05
lease = "10m"
)";

const std::string kShadow =
    "[[plan.shadow]]\npool = \"candidate\"\nshare = 0.2\nmax_concurrent = 8\n";

std::string guard(const std::string& metric) {
    return "[[plan.guard]]\npool = \"candidate\"\nmetric = \"" + metric +
           "\"\nmax = 0.5\nmin_samples = 200\nwindow = \"5m\"\n";
}

TEST(ServiceGateTest, WithoutOwnersEverythingIsBlank) {
    const ServiceReport report = check_service(default_service_config(), {}, Owners{});
    EXPECT_FALSE(report.passed());
    for (const ServiceItem& each : report.failures)
        EXPECT_THAT(each.blank, Contains("owner")) << text_of(each.mode.failure).name;
}

TEST(ServiceGateTest, WhatSluiceCatchesNeedsOnlyAnOwner) {
    const ServiceConfig config = configured(kTwoPools);
    EXPECT_EQ(verdict(config, "worker_crashes", "stable"), Verdict::kPass);
    EXPECT_EQ(verdict(config, "no_spare_worker", "stable"), Verdict::kPass);
    EXPECT_EQ(verdict(config, "bad_configuration"), Verdict::kPass);
}

TEST(ServiceGateTest, WhatItCanNotCatchIsAGapUntilTheFileNamesWhatDoes) {
    const ServiceConfig config = configured(kTwoPools);
    EXPECT_EQ(verdict(config, "machine_lost"), Verdict::kFail);
    EXPECT_EQ(verdict(config, "machine_lost", "service", {},
                      "[[failure]]\nname = \"machine_lost\"\ncaught_by = \"the alert up\"\n"),
              Verdict::kFail)
        << "how it is undone is still blank";
    EXPECT_EQ(verdict(config, "machine_lost", "service", {},
                      "[[failure]]\nname = \"machine_lost\"\ncaught_by = \"the alert up\"\n"
                      "rollback = \"the second site\"\n"),
              Verdict::kPass);
    EXPECT_EQ(verdict(config, "machine_lost", "service", {},
                      "[[failure]]\nname = \"machine_lost\"\naccepted = \"a trial\"\n"),
              Verdict::kPass);
}

TEST(ServiceGateTest, AcceptingNeedsAnOwner) {
    const auto owners = parse_owners(
        "[[failure]]\nname = \"machine_lost\"\naccepted = \"a trial\"\n", "o.toml", {"service"});
    ASSERT_TRUE(owners);
    const auto found = item(check_service(default_service_config(), {}, *owners), "machine_lost");
    EXPECT_THAT(found.blank, ElementsAre("owner"));
    EXPECT_EQ(found.verdict, Verdict::kFail);
}

TEST(ServiceGateTest, PoolsWithoutTrafficAreLeftOut) {
    const Owners owners = owned();
    EXPECT_THAT(subjects_of(check_service(configured(kTwoPools), {}, owners), "worker_crashes"),
                ElementsAre("stable"));
    const auto trial = check_service(configured(kTwoPools, kTrial), {}, owners);
    EXPECT_THAT(subjects_of(trial, "worker_crashes"), ElementsAre("stable", "candidate"));
    EXPECT_THAT(subjects_of(trial, "candidate_errors"), ElementsAre("candidate"));
}

TEST(ServiceGateTest, EachGuardCatchesItsOwnFailureOfACandidate) {
    const std::vector<std::pair<std::string, std::string>> kCases = {
        {"error_rate", "candidate_errors"},
        {"invalid_output_rate", "candidate_invalid_output"},
        {"differs_share", "candidate_answers_differ"},
        {"differs_share", "wrong_model"}};
    for (const auto& [metric, failure] : kCases) {
        EXPECT_EQ(verdict(configured(kTwoPools, kTrial + kShadow), failure, "candidate"),
                  Verdict::kFail)
            << failure;
        EXPECT_EQ(
            verdict(configured(kTwoPools, kTrial + kShadow + guard(metric)), failure, "candidate"),
            Verdict::kPass)
            << failure;
    }
    // Late at the start and late in between are two things.
    const std::string first = kTrial + guard("ttft_p95");
    EXPECT_EQ(verdict(configured(kTwoPools, first), "candidate_slow", "candidate"), Verdict::kFail);
    EXPECT_EQ(
        verdict(configured(kTwoPools, first + guard("tbt_p99")), "candidate_slow", "candidate"),
        Verdict::kPass);
}

TEST(ServiceGateTest, DifferencesAreSeenOnlyByAShadow) {
    EXPECT_EQ(verdict(configured(kTwoPools, kTrial + guard("differs_share")),
                      "candidate_answers_differ", "candidate"),
              Verdict::kFail);
    EXPECT_EQ(verdict(configured(kTwoPools, kTrial), "blind_split", "candidate"), Verdict::kFail);
    EXPECT_EQ(verdict(configured(kTwoPools, kTrial + kShadow), "blind_split", "candidate"),
              Verdict::kPass);
    const std::string compared = kTrial + kShadow + guard("differs_share");
    EXPECT_EQ(verdict(configured(kTwoPools, compared), "noise_taken_for_fault"), Verdict::kFail);
    EXPECT_EQ(
        verdict(configured(kTwoPools, compared + "[[plan.shadow]]\npool = \"stable\"\nshare = 0.1\n"
                                                 "max_concurrent = 2\n"),
                "noise_taken_for_fault"),
        Verdict::kPass);
}

TEST(ServiceGateTest, APassThroughPoolThatAnswersNeedsAddressesARoomAndAPrice) {
    const std::string bare = "[[pool]]\nname = \"stable\"\nengine = \"openai\"\n";
    const ServiceConfig one = configured(bare + "url = \"http://127.0.0.1:1/v1\"\n");
    const ServiceConfig two =
        configured(bare +
                   "urls = [\"http://127.0.0.1:1/v1\", \"http://127.0.0.1:2/v1\"]\n"
                   "max_concurrency = 4\nprice.hour = 2\n");
    for (const std::string_view name : {"no_spare_worker", "overload", "price_missing"}) {
        EXPECT_EQ(verdict(one, name, "stable"), Verdict::kFail) << name;
        EXPECT_EQ(verdict(two, name, "stable"), Verdict::kPass) << name;
    }
    EXPECT_EQ(verdict(one, "worker_stalls", "stable"), Verdict::kPass);
    EXPECT_EQ(verdict(one, "wrong_model", "stable"), Verdict::kFail);
}

TEST(ServiceGateTest, PromptsInTheClearAreAGapOnlyOffTheMachine) {
    const auto of = [](const std::string& url) {
        return verdict(
            configured("[[pool]]\nname = \"stable\"\nengine = \"openai\"\nurl = \"" + url + "\"\n"),
            "upstream_overheard", "stable");
    };
    EXPECT_EQ(of("http://127.0.0.1:8000/v1"), Verdict::kPass);
    EXPECT_EQ(of("https://10.0.0.7/v1"), Verdict::kPass);
    EXPECT_EQ(of("http://10.0.0.7/v1"), Verdict::kFail);
}

TEST(ServiceGateTest, TenantsBehindAPassThroughPoolAreKeptApartOrAGap) {
    const auto pool = [](const std::string& engine, const std::string& more = "") {
        return "[[pool]]\nname = \"stable\"\nengine = \"" + engine +
               "\"\nurl = \"http://127.0.0.1:1/v1\"\n" + more;
    };
    const std::string tenants = "[[tenant]]\nname = \"a\"\n[[tenant]]\nname = \"b\"\n";
    const std::string shares = "shared_cache = \"tenants may share\"\n";
    const auto of = [](const std::string& text, const ServiceFacts& facts = {}) {
        return verdict(configured(text), "tenants_share_cache", "stable", facts);
    };
    EXPECT_EQ(of(pool("openai")), Verdict::kPass);
    EXPECT_EQ(of(pool("vllm") + tenants), Verdict::kPass);
    EXPECT_EQ(of(pool("openai", shares) + tenants), Verdict::kFail);
    EXPECT_EQ(of(pool("vllm", shares) + tenants), Verdict::kFail);
    // Keys have tenants whether or not these have limits.
    EXPECT_EQ(of(pool("openai"), {.key_tenants = 2}), Verdict::kFail);
    EXPECT_EQ(of(tenants), Verdict::kPass);
}

TEST(ServiceGateTest, WhatIsBrokenNowCanNotBeAcceptedAway) {
    const ServiceConfig config = configured(
        "[[pool]]\nname = \"stable\"\nengine = \"openai\"\nurl = \"http://127.0.0.1:1/v1\"\n"
        "api_key_env = \"POOL_KEY\"\n");
    const std::string accepted =
        "[[failure]]\nname = \"upstream_key_missing\"\naccepted = \"later\"\n";
    EXPECT_EQ(verdict(config, "upstream_key_missing", "stable", {}, accepted), Verdict::kPass);
    const ServiceFacts facts{.missing_variables = {"POOL_KEY"}};
    EXPECT_EQ(verdict(config, "upstream_key_missing", "stable", facts, accepted), Verdict::kFail);
    const Owners owners = owned(accepted);
    EXPECT_THAT(to_text(check_service(config, facts, owners)), HasSubstr("$POOL_KEY is not set"));
}

TEST(ServiceGateTest, AModelThatCanNotBeReadIsFoundBeforeTheNextStart) {
    const ServiceConfig config = configured("[[pool]]\nname = \"stable\"\nmodel = \"m.gguf\"\n");
    EXPECT_EQ(verdict(config, "model_file_missing", "stable"), Verdict::kPass);
    EXPECT_EQ(verdict(config, "model_file_missing", "stable",
                      {.broken_files = {{"m.gguf", "no such file"}}}),
              Verdict::kFail);
}

TEST(ServiceGateTest, AServiceThatOthersReachNeedsKeysTlsAndLimits) {
    const std::string open_listen = "[gateway]\nlisten = \"0.0.0.0:8080\"\n";
    const ServiceConfig bare = configured(open_listen);
    EXPECT_EQ(verdict(bare, "clients_overheard"), Verdict::kFail);
    EXPECT_EQ(verdict(bare, "stranger_asks", "service", {.keys = 0}), Verdict::kFail);
    EXPECT_EQ(verdict(bare, "stranger_asks", "service", {.keys = 2}), Verdict::kPass);
    EXPECT_EQ(verdict(bare, "key_leaks"), Verdict::kFail);
    EXPECT_EQ(verdict(configured(open_listen + "[[tenant]]\nname = \"a\"\ntokens_per_minute = 9\n"),
                      "key_leaks"),
              Verdict::kPass);
    const ServiceConfig anyone = configured(open_listen + "open = \"anyone may use this\"\n");
    EXPECT_EQ(verdict(anyone, "stranger_asks", "service", {.keys = 2}), Verdict::kFail);
    EXPECT_EQ(verdict(anyone, "tenant_flood"), Verdict::kFail);
    // Alone on its machine it needs none of it.
    const ServiceConfig local = default_service_config();
    for (const std::string_view name : {"stranger_asks", "clients_overheard", "admin_reached"})
        EXPECT_EQ(verdict(local, name, "service", {.keys = 0}), Verdict::kPass) << name;
    EXPECT_THAT(subjects_of(check_service(local, {}, owned()), "key_leaks"), IsEmpty());
}

TEST(ServiceGateTest, ACertificateNeedsSomebodyWhoRenewsIt) {
    const ServiceConfig config =
        configured("[gateway]\ntls_certificate = \"c.pem\"\ntls_key = \"k.pem\"\n");
    const std::string watched =
        "[[failure]]\nname = \"certificate_expires\"\ncaught_by = \"cert-manager\"\n";
    EXPECT_EQ(verdict(config, "certificate_expires", "service", {.certificate_days = 90}),
              Verdict::kFail);
    EXPECT_EQ(verdict(config, "certificate_expires", "service", {.certificate_days = 90}, watched),
              Verdict::kPass);
    EXPECT_EQ(verdict(config, "certificate_expires", "service", {.certificate_days = 13}, watched),
              Verdict::kFail);
    EXPECT_EQ(
        verdict(config, "certificate_expires", "service",
                {.broken_files = {{"k.pem", "no such file"}}, .certificate_days = 90}, watched),
        Verdict::kFail);
    EXPECT_THAT(
        subjects_of(check_service(default_service_config(), {}, owned()), "certificate_expires"),
        IsEmpty());
}

TEST(ServiceGateTest, RecordsNeedRoomAndOutliveWhatLooksBackAtThem) {
    const ServiceConfig config = configured("[record]\nretention_bytes = \"1GiB\"\n");
    EXPECT_EQ(verdict(config, "record_disk_full", "service", {.record_room_bytes = 2U << 30U}),
              Verdict::kPass);
    EXPECT_EQ(verdict(config, "record_disk_full", "service", {.record_room_bytes = 1U << 20U}),
              Verdict::kFail);
    EXPECT_EQ(verdict(configured("[record]\nretention_age = \"23h\"\n"), "evidence_gone"),
              Verdict::kFail);
    const std::string two_days = kTwoPools + "[record]\nretention_age = \"2d\"\n";
    EXPECT_EQ(verdict(configured(two_days, kTrial), "evidence_gone"), Verdict::kPass);
    std::string long_lease = kTrial;
    long_lease.replace(long_lease.find("10m"), 3, "3d");
    EXPECT_EQ(verdict(configured(two_days, long_lease), "evidence_gone"), Verdict::kFail);
}

TEST(ServiceGateTest, ALayerOfOnesOwnIsToldWhatToKeepAdaptAndReplace) {
    const ServiceConfig config = configured(
        "[gateway]\nqueue_wait = \"90s\"\n[[pool]]\nname = \"stable\"\nengine = \"openai\"\n"
        "url = \"http://127.0.0.1:1/v1\"\nfirst_token_timeout = \"7m\"\n");
    const Owners owners = owned(
        "[[layer]]\nkind = \"traffic\"\nname = \"Envoy\"\n"
        "does = [\"tls\", \"timeouts\", \"retries\", \"weights\"]\nsettled = [\"retries\"]\n");
    const ServiceReport report = check_service(config, {}, owners);
    std::vector<std::string> lines;
    for (const LayerItem& each : report.layers)
        lines.push_back(std::string(each.interface->name) + " " +
                        std::string(to_string(each.interface->decision)) + " " +
                        std::string(to_string(each.verdict)));
    EXPECT_THAT(lines, ElementsAre("tls keep pass", "timeouts adapt fail", "retries replace pass",
                                   "weights replace fail"));
    // The longest silence that this configuration allows.
    EXPECT_THAT(report.layers[1].advice, HasSubstr("7m"));
}

TEST(ServiceGateTest, AllAnsweredIsPassedAndOneGapIsNot) {
    const ServiceConfig config = configured(kTwoPools);
    const auto answered = [](std::string_view name) {
        return "[[failure]]\nname = \"" + std::string(name) +
               "\"\ncaught_by = \"an alert\"\nrollback = \"a runbook\"\n";
    };
    std::string rows;
    for (const std::string_view name :
         {"wrong_model", "bad_rollout", "sluice_upgrade", "stable_degrades"})
        rows += answered(name);
    const Owners almost = owned(rows);
    const ServiceReport gap = check_service(config, {}, almost);
    EXPECT_FALSE(gap.passed());
    EXPECT_THAT(to_text(gap), HasSubstr("gate service: failed (1 of"));
    EXPECT_THAT(to_text(gap), HasSubstr("fail  service  machine_lost: "));
    const Owners all = owned(rows + answered("machine_lost"));
    EXPECT_TRUE(check_service(config, {}, all).passed());
}

TEST(ServiceGateTest, ItsJsonSaysWhatIsBlank) {
    const Owners owners =
        owned("[[layer]]\nkind = \"cache\"\nname = \"store\"\ndoes = [\"events\"]\n");
    const auto json =
        boost::json::parse(to_json(check_service(default_service_config(), {}, owners)));
    EXPECT_EQ(json.at("gate").as_string(), "service");
    EXPECT_FALSE(json.at("passed").as_bool());
    EXPECT_EQ(json.at("layers").at(0).at("decision").as_string(), "keep");
    for (const auto& each : json.at("items").as_array()) {
        if (each.at("item").as_string() != "machine_lost") continue;
        EXPECT_EQ(each.at("blank"), (boost::json::array{"caught_by", "rollback"}));
        EXPECT_EQ(each.at("owner").as_string(), "on-call");
    }
}

TEST(ServiceGateTest, EveryFailureAndInterfaceIsDocumented) {
    std::ifstream file(std::string(kSourceDir) + "/docs/gates.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    for (const std::string_view name : failure_names())
        EXPECT_THAT(page, HasSubstr("`" + std::string(name) + "`"));
    for (const Interface& interface : interfaces())
        EXPECT_THAT(page, HasSubstr("| `" + std::string(interface.name) + "` | " +
                                    std::string(to_string(interface.decision)) + " |"));
}

TEST(ServiceGateTest, TheTemplateAsksForExactlyWhatIsBlank) {
    const ServiceConfig config = configured(kTwoPools);
    const Owners nobody;
    std::string text = owners_template(check_service(config, {}, nobody));
    EXPECT_THAT(text, HasSubstr("name = \"machine_lost\""));
    EXPECT_THAT(text, Not(HasSubstr("name = \"worker_crashes\"")));
    // Filled in, it passes.
    for (std::size_t at = 0; (at = text.find("\"\"", at)) != std::string::npos; at += 4)
        text.insert(at + 1, "x");
    const auto owners = parse_owners(text, "o.toml", {"service", "stable", "candidate"});
    ASSERT_TRUE(owners) << owners.error().front().to_string();
    EXPECT_TRUE(check_service(config, {}, *owners).passed());
}

}  // namespace
}  // namespace sluice::gates
