#pragma once

// An OpenAI-compatible engine that does what a test tells it to, mostly what it should not do.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/event_loop.h"
#include "net/http_server.h"
#include "net/tls.h"

namespace sluice {

class ScriptedUpstream {
public:
    using Exchange = std::shared_ptr<net::HttpExchange>;
    using Script = std::function<void(ScriptedUpstream& upstream, const Exchange& exchange)>;

    /// The first request gets the first script, the second the second; the last one repeats.
    /// With `tls` it speaks https.
    ScriptedUpstream(net::EventLoop& loop, std::vector<Script> scripts,
                     std::shared_ptr<net::TlsIdentity> tls = nullptr);

    [[nodiscard]] std::string url() const;  ///< "http://127.0.0.1:40001/v1"

    /// Pieces of an event stream, each in a turn of its own; then its end, or the connection's.
    enum class End { kProper, kCut, kNever };
    [[nodiscard]] static Script streams(std::vector<std::string> pieces, End end = End::kProper);
    /// The same whole stream, in pieces of `step` bytes.
    [[nodiscard]] static Script streams_in_steps(const std::string& stream, std::size_t step);
    [[nodiscard]] static Script answers(int status, std::string body,
                                        net::HttpHeaders headers = {});
    /// Takes the request and says nothing.
    [[nodiscard]] static Script hangs();
    /// Closes the connection without a word.
    [[nodiscard]] static Script hangs_up();

    int models_status = 200;  ///< Of /v1/models, the probe.
    int health_status = 200;  ///< Of /health.
    std::vector<net::HttpRequest> requests;
    std::vector<Exchange> exchanges;
    std::size_t probes = 0;
    std::size_t gone = 0;  ///< Requests whose connection was closed early.

private:
    void serve(const Exchange& exchange);
    void send_next(const Exchange& exchange, std::shared_ptr<std::vector<std::string>> pieces,
                   std::size_t next, End end);

    net::EventLoop& loop_;
    bool secure_;
    std::vector<Script> scripts_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< Expires with this object.
    std::unique_ptr<net::HttpServer> server_;
};

/// `data: {...}` of Chat Completions with this delta: `{"content":"Hi"}`.
[[nodiscard]] std::string chat_event(const std::string& delta,
                                     const std::string& finish_reason = {});

}  // namespace sluice
