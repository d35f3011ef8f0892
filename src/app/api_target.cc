#include "app/api_target.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <utility>

#include "app/http_call.h"
#include "net/url.h"

namespace sluice::app {
namespace {

Result<std::string> api_root(std::string url) {
    while (url.ends_with('/')) url.pop_back();
    const auto parsed = net::parse_url(url);
    if (!parsed) return std::unexpected(parsed.error());
    if (parsed->target == "/") url += "/v1";
    return url;
}

Result<std::string> api_key(const std::string& variable) {
    if (variable.empty()) return std::string();
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0')
        return std::unexpected(Error::invalid("is not set in the environment", variable));
    return std::string(value);
}

}  // namespace

void add_api_options(CLI::App& command, ApiOptions& options) {
    command.add_option("--url", options.url, "OpenAI-compatible address, with its /v1")
        ->type_name("URL")
        ->capture_default_str();
    command.add_option("--model", options.model, "As the server calls it; else the first it lists")
        ->type_name("NAME");
    command
        .add_option("--api-key-env", options.api_key_env, "Environment variable with the API key")
        ->type_name("NAME");
}

Result<trace::LoadTarget> api_target(const ApiOptions& options) {
    auto url = api_root(options.url);
    if (!url) return std::unexpected(url.error().within("--url"));
    auto key = api_key(options.api_key_env);
    if (!key) return std::unexpected(key.error());
    return trace::LoadTarget{
        .url = std::move(*url), .model = options.model, .api_key = std::move(*key)};
}

Result<std::vector<std::string>> list_models(net::EventLoop& loop, net::HttpClient& client,
                                             const trace::LoadTarget& target) {
    net::HttpHeaders headers;
    if (!target.api_key.empty()) headers.add("Authorization", "Bearer " + target.api_key);
    const std::string url = target.url + "/models";
    const auto answer = fetch(loop, client, {.url = url, .headers = headers});
    if (!answer) return std::unexpected(answer.error().within(url));
    boost::json::error_code failure;
    const auto body = boost::json::parse(answer->body, failure);
    const auto* data = failure ? nullptr : body.find_pointer("/data", failure);
    if (answer->status != 200 || data == nullptr || !data->is_array()) {
        return std::unexpected(
            Error(ErrorCode::kUnavailable,
                  fmt::format("answered {}, and no list of models", answer->status), url));
    }
    std::vector<std::string> models;
    for (const auto& each : data->get_array()) {
        const auto* id = each.is_object() ? each.get_object().if_contains("id") : nullptr;
        if (id != nullptr && id->is_string()) models.emplace_back(id->get_string());
    }
    return models;
}

Result<void> choose_model(net::EventLoop& loop, net::HttpClient& client,
                          trace::LoadTarget& target) {
    if (!target.model.empty()) return {};
    auto models = list_models(loop, client, target);
    if (!models) return std::unexpected(models.error());
    if (models->empty())
        return std::unexpected(Error(ErrorCode::kUnavailable,
                                     "the server lists no model; name one with --model",
                                     target.url));
    target.model = models->front();
    return {};
}

}  // namespace sluice::app
