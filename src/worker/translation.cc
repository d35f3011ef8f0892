#include "worker/translation.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/step_forecast.h"

namespace sluice::worker {
namespace {

port::PositionLogprobs to_port(const engine::PositionLogprobs& position) {
    port::PositionLogprobs result{
        .chosen = {.token = position.chosen.token, .logprob = position.chosen.logprob}, .top = {}};
    result.top.reserve(position.top.size());
    for (const engine::TokenLogprob& entry : position.top) {
        result.top.push_back({.token = entry.token, .logprob = entry.logprob});
    }
    return result;
}

std::vector<port::PositionLogprobs> to_port(
    const std::vector<engine::PositionLogprobs>& positions) {
    std::vector<port::PositionLogprobs> result;
    result.reserve(positions.size());
    for (const engine::PositionLogprobs& position : positions) result.push_back(to_port(position));
    return result;
}

port::FinishReason to_reason(engine::Output& output, const std::string& abort_reason) {
    switch (*output.finish) {
        case engine::Finish::kStop:
            return {.type = port::FinishType::kStop, .matched = output.matched_stop, .message = {}};
        case engine::Finish::kLength: return {.type = port::FinishType::kLength};
        case engine::Finish::kAborted:
            return {.type = port::FinishType::kAbort,
                    .matched = {},
                    .message = abort_reason.empty() ? "aborted" : abort_reason};
        case engine::Finish::kFailed:
        case engine::Finish::kHandedOver: break;
    }
    return {.type = port::FinishType::kError, .matched = {}, .message = std::move(output.message)};
}

/// Where the engine's field stands in the request's JSON.
std::string wire_place(std::string_view place) {
    constexpr auto kSampling = std::to_array<std::string_view>(
        {"max_new_tokens", "temperature", "repetition_penalty", "stop_token_ids", "logit_bias"});
    for (const std::string_view name : kSampling) {
        if (place.starts_with(name)) return "sampling_params." + std::string(place);
    }
    if (place.starts_with("resume_output_ids")) return "sluice." + std::string(place);
    if (place == "id") return "rid";
    return std::string(place);
}

}  // namespace

engine::Request to_engine(port::GenerateRequest request) {
    return {.id = std::move(request.rid),
            .input_ids = std::move(request.input_ids),
            .sampling = std::move(request.sampling_params),
            .resume_output_ids = std::move(request.resume_output_ids),
            .return_logprobs = request.return_logprob,
            .top_logprobs = request.top_logprobs_num,
            .logprob_start = request.logprob_start_len,
            .priority = request.priority,
            .salt = {.shared = std::move(request.kv.salt),
                     .own = std::move(request.kv.own_salt),
                     .own_from = request.kv.own_from},
            .owner = {.tenant = engine::tenant_hash(request.kv.tenant),
                      .retention = request.kv.retention},
            .hand_over = request.phase == port::Phase::kPrefill};
}

port::GenerateFrame to_frame(std::string rid, engine::Output output,
                             const std::string& abort_reason,
                             const std::map<std::string, std::size_t>& fetched_tokens) {
    port::GenerateFrame frame;
    frame.rid = std::move(rid);
    const bool ends = output.finish && *output.finish != engine::Finish::kHandedOver;
    if (ends) frame.finish_reason = to_reason(output, abort_reason);
    frame.output_ids = std::move(output.tokens);
    frame.output_logprobs = to_port(output.logprobs);
    frame.input_logprobs = to_port(output.input_logprobs);
    frame.prompt_tokens = output.prompt_tokens;
    frame.cached_tokens = output.cached_tokens;
    std::uint64_t rest = output.cached_tokens;
    for (const auto& [source, tokens] : fetched_tokens) {
        const std::uint64_t of_source = std::min<std::uint64_t>(tokens, rest);
        if (of_source > 0) frame.cached_tokens_by_source[source] = of_source;
        rest -= of_source;
    }
    if (rest > 0) frame.cached_tokens_by_source["pool"] = rest;
    frame.completion_tokens = output.completion_tokens;
    frame.computed_tokens = output.computed_tokens;
    frame.drafted = output.drafted;
    frame.accepted = output.accepted;
    return frame;
}

std::uint64_t to_microseconds(std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::optional<port::KvDecision> to_decision(std::span<const LoadRecord> loads,
                                            std::chrono::nanoseconds predicted) {
    if (loads.empty()) return std::nullopt;
    port::KvDecision decision{.compute_predicted_us = to_microseconds(predicted)};
    for (const LoadRecord& load : loads) {
        decision.loads.push_back({.source = std::string(load.source),
                                  .choice = std::string(kv::to_string(load.choice)),
                                  .tokens = load.blocks * engine::Engine::kBlockTokens,
                                  .predicted_us = to_microseconds(load.predicted.load),
                                  .compute_us = to_microseconds(load.predicted.compute),
                                  .queue_us = to_microseconds(load.predicted.queue),
                                  .took_us = to_microseconds(load.took)});
    }
    return decision;
}

Refusal to_refusal(const Error& error) {
    Refusal refusal{.status = 400,
                    .error = {.message = error.message(),
                              .code = std::string(port::kInvalidRequest),
                              .param = wire_place(error.place())}};
    const auto is = [&refusal](int status, std::string_view code) {
        refusal.status = status;
        refusal.error.code = code;
    };
    switch (error.code()) {
        case ErrorCode::kExhausted: is(503, port::kQueueFull); break;
        case ErrorCode::kUnavailable: is(503, port::kNotReady); break;
        case ErrorCode::kInternal: is(500, port::kInternal); break;
        case ErrorCode::kOutOfRange:
            if (error.place() == "max_new_tokens") is(400, port::kContextLengthExceeded);
            break;
        default:
            if (error.place() == "id") is(409, port::kDuplicateRequest);
            break;
    }
    return refusal;
}

std::uint64_t block_bytes(const engine::Engine& engine) {
    const checkpoint::HyperParameters& p = engine.model().parameters();
    return std::uint64_t{engine::Engine::kBlockTokens} * p.layers *
           (std::uint64_t{p.kv_rank} + p.rope) * sizeof(float);
}

Sha256Digest version_digest(const port::ServerInfo& about) {
    Sha256 hash;
    for (const std::string* text : {&about.version, &about.commit, &about.build_flags})
        hash.update_u64(text->size()).update(*text);
    return hash.finish();
}

port::ServerInfo describe(const engine::Engine& engine, port::ServerInfo about, std::size_t ranks) {
    const engine::Model& model = engine.model();
    const engine::EngineOptions& options = engine.options();
    const engine::EngineStats stats = engine.stats();
    if (about.model.empty()) about.model = model.parameters().name;
    if (about.dialect.empty()) about.dialect = model.parameters().dialect;
    about.fingerprint = model.fingerprint();
    about.numerics_id = model.numerics_id();
    const kv::BlockKeyRoot& root = engine.key_root();
    about.kv_components = {{.name = root.component,
                            .quantum = 1,
                            .replay = 0,
                            .min_hit = 0,
                            .hit_exact = true,
                            .shard = root.shard,
                            .layout = root.layout,
                            .dtype = root.dtype}};
    about.block_tokens = engine::Engine::kBlockTokens;
    about.context_length = engine.context_tokens();
    // What one request, or the tokens of one rank's requests, can have.
    about.pool_tokens = stats.blocks * engine::Engine::kBlockTokens;
    // By the size of the model, so that workers of one model say the same.
    about.attention_tokens =
        static_cast<std::uint64_t>(engine::StepForecast(model.parameters()).attention_tokens());
    about.max_running = static_cast<std::uint32_t>(options.running_max);
    about.max_waiting = static_cast<std::uint32_t>(options.waiting_max);
    about.vocabulary = model.parameters().vocabulary;
    about.dp_ranks = static_cast<std::uint32_t>(ranks);
    if (ranks > 1) about.topology = "dp=" + std::to_string(ranks);
    about.threads = engine.threads().to_string();
    about.device_memory_bytes = model.weight_bytes() + ranks *
                                                           (stats.blocks_held + stats.blocks_kept) *
                                                           block_bytes(engine);
    return about;
}

}  // namespace sluice::worker
