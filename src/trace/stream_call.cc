#include "trace/stream_call.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "net/sse.h"

namespace sluice::trace {
namespace {

namespace json = boost::json;
using std::chrono::microseconds;

constexpr std::size_t kErrorTextBytes = 512;

json::object answer_schema() {
    return {
        {"type", "object"},
        {"properties", {{"answer", {{"type", "string"}}}, {"confidence", {{"type", "number"}}}}},
        {"required", json::array{"answer", "confidence"}},
        {"additionalProperties", false}};
}

/// The member at the end of `path`, or null.
const json::value* find(const json::value& root, std::initializer_list<std::string_view> path) {
    const json::value* at = &root;
    for (const std::string_view name : path) {
        if (!at->is_object()) return nullptr;
        at = at->get_object().if_contains(name);
        if (!at) return nullptr;
    }
    return at;
}

std::uint32_t count_of(const json::value& usage, std::initializer_list<std::string_view> path) {
    const json::value* value = find(usage, path);
    if (!value || !value->is_int64() || !std::in_range<std::uint32_t>(value->get_int64())) return 0;
    return static_cast<std::uint32_t>(value->get_int64());
}

std::string error_text(const json::value& error) {
    const json::value* message = find(error, {"message"});
    std::string text = message && message->is_string() ? std::string(message->get_string())
                                                       : json::serialize(error);
    text.resize(std::min(text.size(), kErrorTextBytes));
    return text;
}

bool has_text(const json::value& delta, std::string_view name) {
    const json::value* value = find(delta, {name});
    return value && value->is_string() && !value->get_string().empty();
}

bool is_json(std::string_view text) {
    json::error_code failure;
    (void)json::parse(json::string_view(text.data(), text.size()), failure);
    return !failure;
}

}  // namespace

std::string_view to_string(CallOutcome outcome) {
    constexpr auto kNames =
        std::to_array<std::string_view>({"ok", "rejected", "timeout", "invalid_output", "error"});
    return kNames[static_cast<std::size_t>(outcome)];
}

std::string request_body(const LoadTarget& target, const PlannedRequest& request,
                         std::string_view prompt) {
    json::object body{{"model", target.model},
                      {"messages", json::array{json::object{
                                       {"role", "user"},
                                       {"content", json::string(prompt.data(), prompt.size())}}}},
                      {"max_tokens", request.output_tokens},
                      {"stream", true},
                      {"stream_options", {{"include_usage", true}}}};
    if (target.ignore_eos) body["ignore_eos"] = true;
    switch (request.kind) {
        case RequestKind::kText: break;
        case RequestKind::kSeeded:
            body["seed"] = request.text_seed >> 11;  // Survives a double.
            break;
        case RequestKind::kJsonSchema:
            body["response_format"] = {
                {"type", "json_schema"},
                {"json_schema",
                 {{"name", "answer"}, {"strict", true}, {"schema", answer_schema()}}}};
            break;
        case RequestKind::kTools:
            body["tools"] = json::array{json::object{
                {"type", "function"},
                {"function", {{"name", "give_answer"}, {"parameters", answer_schema()}}}}};
            break;
    }
    return json::serialize(body);
}

/// Shared with the callbacks of the running HTTP call, which may outlive the StreamCall by a moment.
struct StreamCall::State {
    SteadyTime due;
    SteadyTime last_token;
    CallOptions options;
    std::function<void(CallResult)> on_end;
    std::unique_ptr<net::HttpCall> call;
    CallResult result;
    net::SseParser parser;
    std::string text;  ///< Of the answer, if somebody will look at it; or the body of an error.
    bool tool_called = false;
    bool broken = false;  ///< `result.error` says how.

    [[nodiscard]] microseconds since(SteadyTime then) const {
        return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - then);
    }

    void on_data(std::string_view data);
    void on_event(const net::SseParser::Event& event);
    void on_delta(const json::value& delta);
    void keep(const json::value& object, std::string_view name);
    void on_token();
    void break_off(std::string error);
    void end(CallOutcome outcome);
    [[nodiscard]] CallOutcome outcome();
};

void StreamCall::State::break_off(std::string error) {
    if (broken) return;
    broken = true;
    result.error = std::move(error);
}

void StreamCall::State::on_data(std::string_view data) {
    if (broken) return;
    if (result.status != 200) {
        text.append(
            data.substr(0, limits::kSseEventBytes - std::min(text.size(), limits::kSseEventBytes)));
        return;
    }
    const auto fed = parser.feed(data, [this](const auto& event) { on_event(event); });
    if (!fed) break_off(fed.error().to_string());
}

void StreamCall::State::on_event(const net::SseParser::Event& event) {
    if (broken || event.data == "[DONE]") return;
    json::error_code failure;
    const json::value chunk = json::parse(event.data, failure);
    if (failure || !chunk.is_object()) return break_off("an event of the stream is no JSON object");
    if (const json::value* error = find(chunk, {"error"}); error && !error->is_null())
        return break_off(error_text(*error));
    if (const json::value* usage = find(chunk, {"usage"}); usage && usage->is_object()) {
        result.prompt_tokens = count_of(*usage, {"prompt_tokens"});
        result.completion_tokens = count_of(*usage, {"completion_tokens"});
        result.cached_tokens = count_of(*usage, {"prompt_tokens_details", "cached_tokens"});
    }
    const json::value* choices = find(chunk, {"choices"});
    if (!choices || !choices->is_array() || choices->get_array().empty()) return;
    const json::value& choice = choices->get_array().front();
    if (const json::value* delta = find(choice, {"delta"})) on_delta(*delta);
    if (has_text(choice, "text")) {
        on_token();
        keep(choice, "text");
    }
    if (const json::value* reason = find(choice, {"finish_reason"}); reason && reason->is_string())
        result.finish_reason = reason->get_string();
}

void StreamCall::State::on_delta(const json::value& delta) {
    const json::value* tools = find(delta, {"tool_calls"});
    const bool tool = tools && tools->is_array() && !tools->get_array().empty();
    tool_called |= tool;
    if (tool || has_text(delta, "content") || has_text(delta, "reasoning_content") ||
        has_text(delta, "reasoning"))
        on_token();
    if (has_text(delta, "content")) keep(delta, "content");
}

void StreamCall::State::keep(const json::value& object, std::string_view name) {
    if (!options.expects_json && !options.keep_text) return;
    const std::string_view piece = find(object, {name})->get_string();
    text.append(
        piece.substr(0, limits::kSseEventBytes - std::min(text.size(), limits::kSseEventBytes)));
}

void StreamCall::State::on_token() {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (!result.ttft) {
        result.ttft = std::chrono::duration_cast<microseconds>(now - due);
    } else if (result.gaps.size() < limits::kMaxTokens) {
        result.gaps.push_back(std::chrono::duration_cast<microseconds>(now - last_token));
    }
    last_token = now;
    if (options.on_token) options.on_token();
}

CallOutcome StreamCall::State::outcome() {
    if (result.status >= 400 && result.status < 500) return CallOutcome::kRejected;
    if (broken || result.status != 200) return CallOutcome::kError;
    if (result.finish_reason.empty()) {
        result.error = "the stream ended without a finish reason";
        return CallOutcome::kError;
    }
    if (options.expects_json && !is_json(text)) {
        result.error = "the answer is no JSON";
        return CallOutcome::kInvalidOutput;
    }
    return CallOutcome::kOk;
}

void StreamCall::State::end(CallOutcome outcome) {
    result.duration = since(due);
    result.outcome = outcome;
    if (result.status != 200 && result.error.empty()) {
        json::error_code failure;
        const json::value body = json::parse(text, failure);
        const json::value* error = failure ? nullptr : find(body, {"error"});
        result.error = error ? error_text(*error) : fmt::format("status {}", result.status);
    }
    if (options.keep_text && result.status == 200) result.text = std::move(text);
    const auto done = std::exchange(on_end, nullptr);
    done(std::move(result));
}

std::unique_ptr<StreamCall> StreamCall::start(net::HttpClient& client, const LoadTarget& target,
                                              std::string body, CallOptions options, SteadyTime due,
                                              std::function<void(CallResult)> on_end) {
    auto state = std::make_shared<State>();
    state->due = due;
    state->options = std::move(options);
    state->on_end = std::move(on_end);
    net::HttpHeaders headers = state->options.headers;
    headers.set("Content-Type", "application/json");
    if (!target.api_key.empty()) headers.set("Authorization", "Bearer " + target.api_key);
    state->call = client.start(
        {.method = "POST",
         .url = target.url + state->options.path,
         .headers = std::move(headers),
         .body = std::move(body),
         .head_time = target.head_time,
         .stall_time = target.stall_time},
        {.on_head = [state](int status, const net::HttpHeaders&) { state->result.status = status; },
         .on_data = [state](std::string_view data) { state->on_data(data); },
         .on_done = [state] { state->end(state->outcome()); },
         .on_error =
             [state](const Error& error) {
                 state->break_off(error.to_string());
                 state->end(error.code() == ErrorCode::kTimeout ? CallOutcome::kTimeout
                                                                : CallOutcome::kError);
             }});
    return std::unique_ptr<StreamCall>(new StreamCall(std::move(state)));
}

StreamCall::StreamCall(std::shared_ptr<State> state) : state_(std::move(state)) {}

// Breaks the circle of state, call and callbacks.
StreamCall::~StreamCall() { state_->call.reset(); }

}  // namespace sluice::trace
