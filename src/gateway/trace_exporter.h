#pragma once

// Sends spans to a collector over OTLP/HTTP, in batches. A collector that is slow or gone costs spans,
// never a request: what waits is bounded, one export runs at a time, and none is tried again.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "gateway/request_report.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

class TraceExporter {
public:
    struct Options {
        /// Of the collector, as OTEL_EXPORTER_OTLP_ENDPOINT has it: "http://127.0.0.1:4318"; spans
        /// go to /v1/traces below it.
        std::string endpoint;
        std::chrono::milliseconds batch_delay{1'000};
    };

    /// Error `kInvalid` for an endpoint that is no http:// address.
    [[nodiscard]] static Result<std::shared_ptr<TraceExporter>> create(net::EventLoop& loop,
                                                                       Options options);

    TraceExporter(net::EventLoop& loop, Options options);

    /// Of a request whose caller records its trace; others are passed over.
    void add(const RequestReport& report);

    [[nodiscard]] std::uint64_t exported() const { return exported_; }  ///< Requests.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

private:
    void send();
    void ended(bool accepted);

    net::EventLoop& loop_;
    Options options_;
    net::HttpClient client_;
    std::vector<std::string> waiting_;  ///< Spans of a request each.
    std::size_t sending_ = 0;           ///< Requests in the running export.
    bool failing_ = false;
    std::uint64_t exported_ = 0;
    std::uint64_t dropped_ = 0;
    net::Timer timer_;
    bool timer_runs_ = false;
    std::unique_ptr<net::HttpCall> call_;
};

}  // namespace sluice::gateway
