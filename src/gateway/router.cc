#include "gateway/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "gateway/answer_writer.h"

namespace sluice::gateway {
namespace {

using protocol::ApiErrorCode;

net::HttpHeaders named(const net::HttpRequest& request, net::HttpHeaders headers = {}) {
    if (std::string id = client_request_id(request); !id.empty())
        headers.set("x-request-id", std::move(id));
    return headers;
}

}  // namespace

std::string client_request_id(const net::HttpRequest& request) {
    const std::string_view id = request.headers.find("x-request-id").value_or("");
    const bool good = id.size() <= limits::kRequestIdBytes &&
                      std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7F; });
    return good ? std::string(id) : std::string();
}

void Router::add(std::string method, const std::string& path, Handler handler) {
    routes_[path].insert_or_assign(std::move(method), std::move(handler));
}

Router::Routes::const_iterator Router::find(std::string_view path) const {
    const auto exact = routes_.find(path);
    if (exact != routes_.end()) return exact;
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? routes_.end()
                                           : routes_.find(path.substr(0, slash + 1));
}

void Router::dispatch(const Exchange& exchange) const {
    const net::HttpRequest& request = exchange->request();
    const auto route = find(request.path);
    if (route == routes_.end()) {
        return respond_error(*exchange,
                             {.code = ApiErrorCode::kNotFound,
                              .message = "there is nothing at " + request.path,
                              .param = {}},
                             named(request));
    }
    const Methods& methods = route->second;
    const bool head = request.method == "HEAD";
    const auto method = methods.find(head ? std::string_view("GET") : request.method);
    if (method != methods.end()) {
        const bool below = route->first.back() == '/';
        const std::string_view path = request.path;
        return method->second(exchange, below ? path.substr(route->first.size()) : "");
    }
    std::string allowed;
    for (const auto& [name, unused] : methods) {
        if (!allowed.empty()) allowed += ", ";
        allowed += name == "GET" ? "GET, HEAD" : name;
    }
    respond_error(
        *exchange,
        {.code = ApiErrorCode::kMethodNotAllowed,
         .message = fmt::format("{} takes {}, not {}", request.path, allowed, request.method),
         .param = {}},
        named(request, {{"Allow", allowed}}));
}

}  // namespace sluice::gateway
