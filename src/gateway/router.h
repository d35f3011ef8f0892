#pragma once

// Which handler answers which path. A path that ends in '/' stands for everything below it.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_server.h"

namespace sluice::gateway {

using Exchange = std::shared_ptr<net::HttpExchange>;

class Router {
public:
    /// `rest` is what follows a path that ends in '/'; else it is empty.
    using Handler = std::function<void(const Exchange& exchange, std::string_view rest)>;

    /// Adds a handler; GET takes HEAD, too. Another one for the same path and method replaces it.
    void add(std::string method, const std::string& path, Handler handler);

    /// Calls the handler, or answers with 404 or 405.
    void dispatch(const Exchange& exchange) const;

private:
    using Methods = std::map<std::string, Handler, std::less<>>;
    using Routes = std::map<std::string, Methods, std::less<>>;

    [[nodiscard]] Routes::const_iterator find(std::string_view path) const;

    Routes routes_;
};

/// The client's name for a request, where it is one that can be logged and sent back; else empty.
[[nodiscard]] std::string client_request_id(const net::HttpRequest& request);

}  // namespace sluice::gateway
