#include <random>
#include <set>

#include "base/limits.h"
#include "port/generate.h"
#include "tests/port/random_float.h"

namespace sluice::port {
namespace {

constexpr std::string_view kRid = "0123456789abcdef0123456789abcdef";

std::string with(std::string_view fields) {
    return "{\"rid\":\"" + std::string(kRid) + "\",\"input_ids\":[1,2]" + std::string(fields) + "}";
}

std::string with_sampling(std::string_view fields) {
    return with(",\"sampling_params\":{" + std::string(fields) + "}");
}

void expect_refused(std::string_view json, std::string_view place) {
    const Result<GenerateRequest> request = parse_generate_request(json);
    ASSERT_FALSE(request.has_value()) << json;
    EXPECT_EQ(request.error().place(), place) << json;
    EXPECT_FALSE(request.error().message().empty());
}

TEST(GenerateRequestTest, NamesOnTheWireAreThoseOfTheContract) {
    GenerateRequest request;
    request.rid = kRid;
    request.input_ids = {7, 8};
    request.sampling_params.max_new_tokens = 5;
    request.sampling_params.temperature = 0.7F;
    request.sampling_params.seed = 18'446'744'073'709'551'615U;
    request.sampling_params.logit_bias = {{9, -1.5F}, {3, 2.0F}};
    request.sampling_params.stop_token_ids = {1};
    request.top_logprobs_num = 2;
    request.priority = -1;
    request.phase = Phase::kDecode;
    request.kv.tenant = "a";
    request.kv.retention = Retention::kAgent;
    request.kv.salt = "tenant \"a\"";
    request.kv.own_salt = "anna";
    request.kv.own_from = 1;
    request.kv.sources = {
        {.url = "http://w:1", .hold = std::string(kRid), .keys = {sha256("a")}, .tail_tokens = 3}};
    request.dp_rank = 2;
    request.resume_output_ids = {4};
    request.deadline_ms = 1000;
    EXPECT_EQ(to_json(request),
              R"({"rid":"0123456789abcdef0123456789abcdef","input_ids":[7,8],)"
              R"("sampling_params":{"max_new_tokens":5,"temperature":0.7,"top_p":1,"top_k":0,)"
              R"("min_p":0,"seed":18446744073709551615,"frequency_penalty":0,)"
              R"("presence_penalty":0,"repetition_penalty":1,"logit_bias":{"9":-1.5,"3":2},)"
              R"("stop_token_ids":[1],"min_new_tokens":0,"ignore_eos":false},"stream":true,)"
              R"("return_logprob":false,"top_logprobs_num":2,"logprob_start_len":-1,)"
              R"("priority":-1,"sluice":{"phase":"decode","kv":{"tenant":"a","class":"agent",)"
              R"("salt":"tenant \"a\"","own_salt":"anna","own_from":1,)"
              R"("sources":[{"url":"http://w:1","hold":"0123456789abcdef0123456789abcdef",)"
              R"("keys":["ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"],)"
              R"("tail_tokens":3}]},"dp_rank":2,"resume_output_ids":[4],)"
              R"("deadline_ms":1000}})");
}

TEST(GenerateRequestTest, WhatIsLeftOutHasItsDefaultAndWhatIsUnknownIsIgnored) {
    const auto request = parse_generate_request(
        with(R"(,"priority":null,"sluice":{"phase":null,"kv":{"class":"chat"}},"x":[{}])"));
    ASSERT_TRUE(request.has_value()) << request.error().to_string();
    GenerateRequest expected;
    expected.rid = kRid;
    expected.input_ids = {1, 2};
    EXPECT_EQ(*request, expected);
}

GenerateRequest random_request(std::mt19937_64& random) {
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    const auto coin = [&random] { return random() % 2 == 0; };
    const auto tokens = [&](std::uint64_t least) {
        std::vector<TokenId> ids(least + below(6));
        for (TokenId& id : ids) id = static_cast<TokenId>(random() >> 33);
        return ids;
    };
    GenerateRequest request;
    for (std::size_t i = 0; i < kRidLength; ++i) request.rid += "0123456789abcdef"[below(16)];
    request.input_ids = tokens(1);
    SamplingParams& params = request.sampling_params;
    params.max_new_tokens = static_cast<std::uint32_t>(below(100'000));
    params.min_new_tokens = static_cast<std::uint32_t>(below(params.max_new_tokens + 1));
    params.temperature = test::random_float(random, 0.0F, 2.0F);
    params.top_p = test::random_float(random, 1e-30F, 1.0F);
    params.top_k = static_cast<std::int32_t>(random() >> 33);
    params.min_p = test::random_float(random, 0.0F, 1.0F);
    params.seed = random();
    params.frequency_penalty = test::random_float(random, -2.0F, 2.0F);
    params.presence_penalty = test::random_float(random, -2.0F, 2.0F);
    params.repetition_penalty = test::random_float(random, 1e-30F, 2.0F);
    std::set<TokenId> biased;
    for (const TokenId id : tokens(0)) {
        if (!biased.insert(id).second) continue;
        params.logit_bias.emplace_back(id, test::random_float(random, -100.0F, 100.0F));
    }
    params.stop_token_ids = tokens(0);
    params.ignore_eos = coin();
    request.stream = coin();
    request.return_logprob = coin();
    request.top_logprobs_num = static_cast<std::uint32_t>(below(21));
    request.logprob_start_len = static_cast<std::int64_t>(below(request.input_ids.size() + 2)) - 1;
    request.priority = static_cast<std::int32_t>(random() & 0xFFFFFFFF);
    request.resume_output_ids = tokens(0);
    for (std::uint64_t i = below(9); i > 0; --i) request.kv.salt += static_cast<char>(below(128));
    request.kv.tenant = coin() ? "t" : "";
    request.kv.retention = static_cast<Retention>(below(3));
    if (coin()) request.kv.own_salt = "o";
    if (coin()) request.kv.own_from = below(1000);
    request.kv.salt += coin() ? "é…😀" : "";
    request.deadline_ms = below(1'000'000);
    request.phase = static_cast<Phase>(below(3));
    if (coin()) request.dp_rank = static_cast<std::uint32_t>(below(limits::kDpRanks));
    for (std::uint64_t i = below(3); i > 0; --i) {
        KvSource& source = request.kv.sources.emplace_back();
        source.url = "http://10.0.0.1:" + std::to_string(below(65'536));
        if (coin()) source.hold = request.rid;
        for (std::uint64_t k = below(4); k > 0; --k)
            source.keys.push_back(sha256(std::to_string(random())));
        source.tail_tokens = static_cast<std::uint32_t>(below(64));
    }
    return request;
}

TEST(GenerateRequestTest, RandomRequestsComeBackEqual) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 20'000; ++round) {
        const GenerateRequest request = random_request(random);
        const auto back = parse_generate_request(to_json(request));
        ASSERT_TRUE(back.has_value()) << back.error().to_string() << '\n' << to_json(request);
        ASSERT_EQ(*back, request) << to_json(request);
    }
}

TEST(GenerateRequestTest, AWrongFieldIsNamedWithItsPlace) {
    expect_refused(with(R"(,"stream":1)"), "stream");
    expect_refused(with(R"(,"return_logprob":"yes")"), "return_logprob");
    expect_refused(with(R"(,"top_logprobs_num":21)"), "top_logprobs_num");
    expect_refused(with(R"(,"logprob_start_len":-2)"), "logprob_start_len");
    expect_refused(with(R"(,"logprob_start_len":3)"), "logprob_start_len");
    expect_refused(with(R"(,"priority":2147483648)"), "priority");
    expect_refused(with(R"(,"priority":1.5)"), "priority");
    expect_refused(with(R"(,"sampling_params":[])"), "sampling_params");
    expect_refused(with(R"(,"sluice":7)"), "sluice");
    expect_refused(with(R"(,"sluice":{"kv":[]})"), "sluice.kv");
    expect_refused(with(R"(,"sluice":{"kv":{"salt":5}})"), "sluice.kv.salt");
    expect_refused(with(R"(,"sluice":{"kv":{"class":"chats"}})"), "sluice.kv.class");
    expect_refused(with(R"(,"sluice":{"kv":{"own_from":-1}})"), "sluice.kv.own_from");
    expect_refused(with(R"(,"sluice":{"deadline_ms":-1})"), "sluice.deadline_ms");
    expect_refused(with(R"(,"sluice":{"resume_output_ids":[1,null]})"),
                   "sluice.resume_output_ids[1]");
    expect_refused(with(R"(,"sluice":{"phase":"encode"})"), "sluice.phase");
    expect_refused(with(R"(,"sluice":{"dp_rank":64})"), "sluice.dp_rank");
    expect_refused(with(R"(,"sluice":{"kv":{"sources":[1]}})"), "sluice.kv.sources[0]");
    const std::string hold = R"("hold":")" + std::string(kRid) + '"';
    const auto source = [&](std::string_view fields) {
        return with(R"(,"sluice":{"kv":{"sources":[{)" + std::string(fields) + "}]}}");
    };
    expect_refused(source(hold), "sluice.kv.sources[0].url");
    expect_refused(source(R"("url":"http://w:1","hold":"ab")"), "sluice.kv.sources[0].hold");
    expect_refused(source(R"("url":"http://w:1","keys":["AB"],)" + hold),
                   "sluice.kv.sources[0].keys[0]");
    expect_refused(source(R"("url":"http://w:1","tail_tokens":-1,)" + hold),
                   "sluice.kv.sources[0].tail_tokens");
}

TEST(GenerateRequestTest, SamplingRangesHold) {
    for (const char* field : {R"("temperature":-0.1)",
                              R"("temperature":2.01)",
                              R"("temperature":"1")",
                              R"("temperature":1e300)",
                              R"("top_p":0)",
                              R"("top_p":1.01)",
                              R"("top_k":-1)",
                              R"("top_k":2147483648)",
                              R"("min_p":-0.01)",
                              R"("min_p":2)",
                              R"("seed":-1)",
                              R"("seed":18446744073709551616)",
                              R"("seed":1.0)",
                              R"("frequency_penalty":-2.1)",
                              R"("presence_penalty":2.1)",
                              R"("repetition_penalty":0)",
                              R"("max_new_tokens":4294967296)",
                              R"("max_new_tokens":true)",
                              R"("min_new_tokens":17)",
                              R"("ignore_eos":0)",
                              R"("json_schema":"{}")",
                              R"("regex":"a*")",
                              R"("stop_token_ids":5)"}) {
        const std::string_view name(field + 1, std::string_view(field).find('"', 1) - 1);
        expect_refused(with_sampling(field), "sampling_params." + std::string(name));
    }
    EXPECT_TRUE(
        parse_generate_request(
            with_sampling(
                R"("temperature":2,"top_p":1e-9,"min_p":1,"frequency_penalty":-2,"seed":0)"))
            .has_value());
}

TEST(GenerateRequestTest, ListsHaveBounds) {
    std::string ids = "0";
    for (std::size_t i = 0; i < limits::kStopTokenIds; ++i) ids += ",0";
    expect_refused(with_sampling("\"stop_token_ids\":[" + ids + "]"),
                   "sampling_params.stop_token_ids");
    std::string biases = "\"0\":0";
    for (std::size_t i = 1; i <= limits::kLogitBiasEntries; ++i) {
        biases += ",\"" + std::to_string(i) + "\":0";
    }
    expect_refused(with_sampling("\"logit_bias\":{" + biases + "}"), "sampling_params.logit_bias");
    std::string keys = "\"" + to_hex(sha256("a")) + "\"";
    for (std::size_t i = 0; i < limits::kPortBlockKeys; ++i)
        keys += ",\"" + to_hex(sha256("a")) + "\"";
    expect_refused(with(R"(,"sluice":{"kv":{"sources":[{"url":"http://w:1","hold":")" +
                        std::string(kRid) + R"(","keys":[)" + keys + "]}]}}"),
                   "sluice.kv.sources[0].keys");
    std::string sources = "{}";
    for (std::size_t i = 0; i < limits::kPortSources; ++i) sources += ",{}";
    expect_refused(with(R"(,"sluice":{"kv":{"sources":[)" + sources + "]}}"), "sluice.kv.sources");
    expect_refused(with(",\"sluice\":{\"kv\":{\"salt\":\"" +
                        std::string(limits::kPortSaltBytes + 1, 'x') + "\"}}"),
                   "sluice.kv.salt");
}

TEST(GenerateRequestTest, LogitBiasMapsTokenIdsToNumbersInRange) {
    expect_refused(with_sampling(R"("logit_bias":{"a":1})"), "sampling_params.logit_bias");
    expect_refused(with_sampling(R"("logit_bias":{"-1":1})"), "sampling_params.logit_bias");
    expect_refused(with_sampling(R"("logit_bias":{"5":101})"), "sampling_params.logit_bias.5");
    expect_refused(with_sampling(R"("logit_bias":{"5":"1"})"), "sampling_params.logit_bias.5");
}

TEST(GenerateRequestTest, TokensAndRidAreNeeded) {
    const std::string rid = "\"rid\":\"" + std::string(kRid) + "\"";
    expect_refused("{" + rid + "}", "input_ids");
    expect_refused("{" + rid + ",\"input_ids\":[]}", "input_ids");
    expect_refused("{" + rid + ",\"input_ids\":[1,-1]}", "input_ids[1]");
    expect_refused("{" + rid + ",\"input_ids\":[2147483648]}", "input_ids[0]");
    expect_refused("{" + rid + ",\"input_ids\":[[1]]}", "input_ids[0]");
    expect_refused(R"({"input_ids":[1]})", "rid");
    expect_refused(R"({"rid":"0123","input_ids":[1]})", "rid");
    expect_refused(R"({"rid":"0123456789ABCDEF0123456789ABCDEF","input_ids":[1]})", "rid");
    expect_refused(R"({"rid":7,"input_ids":[1]})", "rid");
}

TEST(GenerateRequestTest, WhatIsNotOneJsonObjectIsRefused) {
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("[]"), std::string("null"), with("") + "x",
          with("") + with(""), with(",\"x\":NaN"), with(",\"x\":\"\xff\""),
          with(",\"x\":" + std::string(10'000, '[') + std::string(10'000, ']'))}) {
        expect_refused(text, "");
    }
    EXPECT_TRUE(parse_generate_request(" " + with("") + " \n").has_value());
}

}  // namespace
}  // namespace sluice::port
