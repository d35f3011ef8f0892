#include "gateway/trace_exporter.h"

#include <utility>

#include "base/log.h"
#include "base/trace_limits.h"
#include "gateway/otlp_json.h"
#include "net/url.h"

namespace sluice::gateway {

Result<std::shared_ptr<TraceExporter>> TraceExporter::create(net::EventLoop& loop,
                                                             Options options) {
    while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
    if (const auto url = net::parse_url(options.endpoint + "/v1/traces"); !url)
        return std::unexpected(url.error().within("otlp_endpoint"));
    return std::make_shared<TraceExporter>(loop, std::move(options));
}

TraceExporter::TraceExporter(net::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), client_(loop) {}

void TraceExporter::add(const RequestReport& report) {
    if (!report.trace.sampled || report.trace.trace_id.empty()) return;
    if (waiting_.size() + sending_ >= limits::kTracesWaiting) {
        ++dropped_;
        return;
    }
    waiting_.push_back(spans_json(report));
    if (call_ || timer_runs_) return;
    timer_runs_ = true;
    timer_ = loop_.call_after(options_.batch_delay, [this] {
        timer_runs_ = false;
        send();
    });
}

void TraceExporter::send() {
    if (call_ || waiting_.empty()) return;
    sending_ = waiting_.size();
    net::ClientRequest request{.method = "POST",
                               .url = options_.endpoint + "/v1/traces",
                               .headers = {{"Content-Type", "application/json"}},
                               .body = export_json(waiting_),
                               .head_time = std::chrono::seconds(10),
                               .stall_time = std::chrono::seconds(10)};
    waiting_.clear();
    auto status = std::make_shared<int>(0);
    call_ =
        client_.start(std::move(request),
                      {.on_head = [status](int code, const net::HttpHeaders&) { *status = code; },
                       .on_done = [this, status] { ended(*status / 100 == 2); },
                       .on_error = [this](const Error&) { ended(false); }});
}

void TraceExporter::ended(bool accepted) {
    call_.reset();
    (accepted ? exported_ : dropped_) += std::exchange(sending_, 0);
    if (accepted == failing_) {
        failing_ = !accepted;
        if (failing_) {
            log::warn("the collector at {} takes no traces; they are dropped", options_.endpoint);
        } else {
            log::info("the collector at {} takes traces again", options_.endpoint);
        }
    }
    if (waiting_.empty() || timer_runs_) return;
    timer_runs_ = true;
    timer_ = loop_.call_after(options_.batch_delay, [this] {
        timer_runs_ = false;
        send();
    });
}

}  // namespace sluice::gateway
