#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/limits.h"
#include "port/generate.h"
#include "port/json_reader.h"
#include "port/json_writer.h"
#include "port/kv_source.h"

namespace sluice::port {
namespace {

constexpr FloatRange kTemperatures{0.0F, 2.0F};
constexpr FloatRange kTopPs{0.0F, 1.0F, false};
constexpr FloatRange kMinPs{0.0F, 1.0F};
constexpr FloatRange kPenalties{-2.0F, 2.0F};
constexpr FloatRange kRepetitionPenalties{0.0F, 2.0F, false};
constexpr FloatRange kBiases{-100.0F, 100.0F};

constexpr std::array<std::string_view, 3> kPhases{"full", "prefill", "decode"};

constexpr std::int64_t kTopKMax = std::numeric_limits<std::int32_t>::max();

void write(JsonWriter& writer, const SamplingParams& params) {
    writer.begin_object();
    writer.field("max_new_tokens", params.max_new_tokens);
    writer.field("temperature", params.temperature);
    writer.field("top_p", params.top_p);
    writer.field("top_k", params.top_k);
    writer.field("min_p", params.min_p);
    writer.field("seed", params.seed);
    writer.field("frequency_penalty", params.frequency_penalty);
    writer.field("presence_penalty", params.presence_penalty);
    writer.field("repetition_penalty", params.repetition_penalty);
    if (!params.logit_bias.empty()) {
        writer.key("logit_bias");
        writer.begin_object();
        for (const auto& [token, bias] : params.logit_bias) {
            writer.field(fmt::format("{}", token), bias);
        }
        writer.end_object();
    }
    if (!params.stop_token_ids.empty()) writer.array("stop_token_ids", params.stop_token_ids);
    writer.field("min_new_tokens", params.min_new_tokens);
    writer.field("ignore_eos", params.ignore_eos);
    writer.end_object();
}

std::optional<TokenId> token_from_text(std::string_view text) {
    TokenId token = 0;
    const char* const first = text.data();
    const char* const last = first + text.size();
    const auto [end, error] = std::from_chars(first, last, token);
    if (error != std::errc{} || end != last || token < 0) return std::nullopt;
    return token;
}

void read_logit_bias(JsonFields& fields, SamplingParams& params) {
    const auto* const biases = fields.object("logit_bias");
    if (biases == nullptr) return;
    if (biases->size() > limits::kLogitBiasEntries) {
        fields.fail("logit_bias",
                    fmt::format("this has {} entries, but at most {} are allowed", biases->size(),
                                limits::kLogitBiasEntries),
                    ErrorCode::kOutOfRange);
        return;
    }
    JsonFields inside = fields.inside(*biases, "logit_bias");
    for (const auto& entry : *biases) {
        const std::string_view name(entry.key().data(), entry.key().size());
        const std::optional<TokenId> token = token_from_text(name);
        if (!token) {
            fields.fail("logit_bias", "each key must be a token id");
            return;
        }
        float bias = 0.0F;
        inside.read(name, bias, kBiases);
        params.logit_bias.emplace_back(*token, bias);
    }
}

void read_sampling(JsonFields fields, SamplingParams& params) {
    fields.read("max_new_tokens", params.max_new_tokens, 0, limits::kModelContextTokens);
    fields.read("temperature", params.temperature, kTemperatures);
    fields.read("top_p", params.top_p, kTopPs);
    fields.read("top_k", params.top_k, 0, kTopKMax);
    fields.read("min_p", params.min_p, kMinPs);
    fields.read("seed", params.seed, 0, std::numeric_limits<std::uint64_t>::max());
    fields.read("frequency_penalty", params.frequency_penalty, kPenalties);
    fields.read("presence_penalty", params.presence_penalty, kPenalties);
    fields.read("repetition_penalty", params.repetition_penalty, kRepetitionPenalties);
    read_logit_bias(fields, params);
    fields.read_tokens("stop_token_ids", params.stop_token_ids, limits::kStopTokenIds);
    fields.read("min_new_tokens", params.min_new_tokens, 0, params.max_new_tokens);
    fields.read("ignore_eos", params.ignore_eos);
    for (const char* name : {"json_schema", "regex", "ebnf", "structural_tag"}) {
        fields.refuse(name, "constrained output is not available on this port yet");
    }
}

void write_kv(JsonWriter& writer, const KvTerms& kv) {
    writer.key("kv");
    writer.begin_object();
    if (!kv.tenant.empty()) writer.field("tenant", kv.tenant);
    writer.field("class", to_string(kv.retention));
    if (!kv.salt.empty()) writer.field("salt", kv.salt);
    if (!kv.own_salt.empty()) writer.field("own_salt", kv.own_salt);
    if (kv.own_from > 0) writer.field("own_from", kv.own_from);
    if (!kv.sources.empty()) {
        writer.key("sources");
        writer.begin_array();
        for (const KvSource& source : kv.sources) {
            writer.begin_object();
            write_fields(writer, source);
            writer.end_object();
        }
        writer.end_array();
    }
    writer.end_object();
}

bool has_own(const GenerateRequest& request) {
    return request.phase != Phase::kFull || request.dp_rank || request.kv != KvTerms{} ||
           !request.resume_output_ids.empty() || request.deadline_ms > 0;
}

void write_own(JsonWriter& writer, const GenerateRequest& request) {
    if (!has_own(request)) return;
    writer.key("sluice");
    writer.begin_object();
    if (request.phase != Phase::kFull) writer.field("phase", to_string(request.phase));
    if (request.kv != KvTerms{}) write_kv(writer, request.kv);
    if (request.dp_rank) writer.field("dp_rank", *request.dp_rank);
    if (!request.resume_output_ids.empty()) {
        writer.array("resume_output_ids", request.resume_output_ids);
    }
    if (request.deadline_ms > 0) writer.field("deadline_ms", request.deadline_ms);
    writer.end_object();
}

void read_phase(JsonFields& fields, Phase& out) {
    std::string phase(to_string(out));
    fields.read("phase", phase, limits::kPortTextBytes);
    const auto* const found = std::ranges::find(kPhases, phase);
    if (found == kPhases.end()) {
        return fields.fail("phase", R"(this must be "full", "prefill" or "decode")");
    }
    out = static_cast<Phase>(found - kPhases.begin());
}

void read_retention(JsonFields& fields, Retention& out) {
    std::string name(to_string(out));
    fields.read("class", name, limits::kPortTextBytes);
    const auto retention = retention_from(name);
    if (!retention) return fields.fail("class", R"(this must be "agent", "chat" or "none")");
    out = *retention;
}

void read_kv(JsonFields fields, KvTerms& kv) {
    fields.read("tenant", kv.tenant, limits::kPortSaltBytes);
    read_retention(fields, kv.retention);
    fields.read("salt", kv.salt, limits::kPortSaltBytes);
    fields.read("own_salt", kv.own_salt, limits::kPortSaltBytes);
    fields.read("own_from", kv.own_from, 0, limits::kModelContextTokens);
    const auto* const sources = fields.array("sources", limits::kPortSources);
    if (sources == nullptr) return;
    for (const auto& value : *sources) {
        const std::string name = fmt::format("sources[{}]", kv.sources.size());
        const auto* const object = value.if_object();
        if (object == nullptr) return fields.fail(name, "this must be an object");
        JsonFields inside = fields.inside(*object, name);
        KvSource& source = kv.sources.emplace_back();
        read_fields(inside, source);
        if (source.url.empty()) inside.fail("url", "this must be the URL of a worker");
    }
}

void read_own(JsonFields fields, GenerateRequest& request) {
    read_phase(fields, request.phase);
    if (const auto* const kv = fields.object("kv")) read_kv(fields.inside(*kv, "kv"), request.kv);
    std::int64_t rank = -1;
    fields.read("dp_rank", rank, 0, std::int64_t{limits::kDpRanks} - 1);
    if (rank >= 0) request.dp_rank = static_cast<std::uint32_t>(rank);
    fields.read_tokens("resume_output_ids", request.resume_output_ids, limits::kModelContextTokens);
    fields.read("deadline_ms", request.deadline_ms, 0, limits::kPortDeadlineMilliseconds);
}

void read_request(JsonFields fields, GenerateRequest& request) {
    fields.read_rid("rid", request.rid);
    fields.read_tokens("input_ids", request.input_ids, limits::kModelContextTokens,
                       Need::kRequired);
    if (request.input_ids.empty()) fields.fail("input_ids", "there must be at least one token");
    if (const auto* const params = fields.object("sampling_params")) {
        read_sampling(fields.inside(*params, "sampling_params"), request.sampling_params);
    }
    fields.read("stream", request.stream);
    fields.read("return_logprob", request.return_logprob);
    fields.read("top_logprobs_num", request.top_logprobs_num, 0, limits::kTopLogprobs);
    fields.read("logprob_start_len", request.logprob_start_len, -1,
                static_cast<std::int64_t>(request.input_ids.size()));
    fields.read("priority", request.priority, std::numeric_limits<std::int32_t>::min(),
                std::numeric_limits<std::int32_t>::max());
    if (const auto* const own = fields.object("sluice")) {
        read_own(fields.inside(*own, "sluice"), request);
    }
}

}  // namespace

std::string_view to_string(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }

std::string to_json(const GenerateRequest& request) {
    std::string out;
    constexpr std::size_t kFixedBytes = 512;
    constexpr std::size_t kTokenBytes = 7;
    out.reserve(kFixedBytes +
                kTokenBytes * (request.input_ids.size() + request.resume_output_ids.size()));
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("rid", request.rid);
    writer.array("input_ids", request.input_ids);
    writer.key("sampling_params");
    write(writer, request.sampling_params);
    writer.field("stream", request.stream);
    writer.field("return_logprob", request.return_logprob);
    writer.field("top_logprobs_num", request.top_logprobs_num);
    writer.field("logprob_start_len", request.logprob_start_len);
    writer.field("priority", request.priority);
    write_own(writer, request);
    writer.end_object();
    return out;
}

Result<GenerateRequest> parse_generate_request(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    GenerateRequest request;
    read_request(JsonFields(**root, {}, error), request);
    if (error) return std::unexpected(*error);
    return request;
}

}  // namespace sluice::port
