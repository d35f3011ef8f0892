#include "app/admin_client.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <utility>

#include "app/command.h"
#include "app/state_folder.h"
#include "net/url.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:8081";

std::string text_at(const json::value& value, std::string_view path) {
    boost::system::error_code error;
    const json::value* const found = value.find_pointer(path, error);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

Error refusal(const std::string& url, const HttpAnswer& answer) {
    boost::system::error_code error;
    const json::value body = json::parse(answer.body, error);
    std::string message = error ? "" : text_at(body, "/error/message");
    if (message.empty()) message = fmt::format("{} answered with status {}", url, answer.status);
    return {ErrorCode::kUnavailable, std::move(message),
            error ? "" : text_at(body, "/error/param")};
}

Result<std::string> checked_call(const AdminOptions& options, net::ClientRequest request,
                                 const BodySink& sink) {
    const Result<std::string> url = admin_url(options);
    if (!url) return std::unexpected(url.error());
    request.url = *url + request.url;
    // Not a flag: those are for everybody to see in the list of processes.
    if (const char* const key = std::getenv("SLUICE_ADMIN_KEY"); key != nullptr && *key != '\0')
        request.headers.set("Authorization", std::string("Bearer ") + key);
    net::EventLoop loop;
    net::HttpClient client(loop);
    Result<HttpAnswer> answer = fetch(loop, client, std::move(request), sink);
    if (!answer) {
        return std::unexpected(
            Error(ErrorCode::kUnavailable,
                  fmt::format("no gateway answers at {}: {}; `sluice up` starts one, and --url "
                              "names another address",
                              *url, answer.error().message())));
    }
    if (answer->status / 100 != 2) return std::unexpected(refusal(*url, *answer));
    return std::move(answer->body);
}

}  // namespace

void add_admin_options(CLI::App& verb, AdminOptions& options, const std::string& json_help) {
    verb.add_option("--url", options.url,
                    "Admin address; else that of the running service, else http://127.0.0.1:8081")
        ->type_name("URL");
    verb.add_option("--state", options.state, "State folder of the service; as given to `up`")
        ->type_name("DIR");
    verb.add_flag("--json", options.json, json_help);
}

Result<std::string> admin_url(const AdminOptions& options) {
    if (!options.url.empty()) {
        std::string url = options.url;
        while (url.ends_with('/')) url.pop_back();
        if (const auto parsed = net::parse_url(url); !parsed)
            return std::unexpected(Error::invalid(
                fmt::format("\"{}\" {}", options.url, parsed.error().message()), "--url"));
        return url;
    }
    if (const auto folder = StateFolder::find(options.state); folder && folder->holder()) {
        if (const auto state = folder->read_state(); state) return state->admin;
    }
    return std::string(kDefaultUrl);
}

Result<std::string> call_admin(const AdminOptions& options, net::ClientRequest request) {
    return checked_call(options, std::move(request), {});
}

Result<json::object> ask_admin(const AdminOptions& options, net::ClientRequest request) {
    if (!request.body.empty()) request.headers.set("Content-Type", "application/json");
    const auto body = call_admin(options, std::move(request));
    if (!body) return std::unexpected(body.error());
    boost::system::error_code error;
    json::value answer = json::parse(*body, error);
    if (!error && answer.is_object()) return std::move(answer.get_object());
    return std::unexpected(Error::corrupt("what answers there is not a gateway"));
}

Result<void> stream_admin(const AdminOptions& options, net::ClientRequest request,
                          const BodySink& sink) {
    const auto body = checked_call(options, std::move(request), sink);
    if (!body) return std::unexpected(body.error());
    return {};
}

int fail_admin(const Error& error) {
    return fail(error.code() == ErrorCode::kInvalid ? kWrongUse : kFailed, error);
}

}  // namespace sluice::app
