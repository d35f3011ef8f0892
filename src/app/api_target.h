#pragma once

// The OpenAI-compatible address that `bench load` and `gate` ask: which options name it, and what is
// learned from the server itself.

#include <string>
#include <vector>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "trace/stream_call.h"

namespace CLI {
class App;
}

namespace sluice::app {

struct ApiOptions {
    std::string url = "http://127.0.0.1:8080/v1";
    std::string model;        ///< Empty: the first that the server lists.
    std::string api_key_env;  ///< Name of the environment variable that holds the key.
};

/// Declares --url, --model and --api-key-env.
void add_api_options(CLI::App& command, ApiOptions& options);

/// Without asking anybody: address and key. "http://host" alone means its /v1. Errors are wrong use.
[[nodiscard]] Result<trace::LoadTarget> api_target(const ApiOptions& options);

/// The models that the server lists.
[[nodiscard]] Result<std::vector<std::string>> list_models(net::EventLoop& loop,
                                                           net::HttpClient& client,
                                                           const trace::LoadTarget& target);

/// Fills in the first model listed if none was named.
[[nodiscard]] Result<void> choose_model(net::EventLoop& loop, net::HttpClient& client,
                                        trace::LoadTarget& target);

}  // namespace sluice::app
