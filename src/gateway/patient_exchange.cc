#include "gateway/patient_exchange.h"

#include <utility>

#include "base/limits.h"
#include "net/sse.h"

namespace sluice::gateway {
namespace {

constexpr std::chrono::seconds kCommentPause{15};

}  // namespace

void PatientExchange::promise_stream(net::HttpHeaders headers, std::chrono::milliseconds patience) {
    if (answer_begun_) return;
    headers_ = std::move(headers);
    headers_.set("Content-Type", "text/event-stream; charset=utf-8");
    headers_.set("Cache-Control", "no-cache");
    say_later(patience);
}

void PatientExchange::say_later(std::chrono::milliseconds pause) {
    timer_ = loop_.call_after(pause, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->say_something();
    });
}

void PatientExchange::say_something() {
    if (answer_begun_) return;
    if (!std::exchange(head_sent_, true)) inner_->begin_stream(200, std::move(headers_));
    inner_->write(net::sse_comment("waiting"));
    say_later(kCommentPause);
}

void PatientExchange::respond(net::HttpResponse response) {
    timer_.cancel();
    answer_begun_ = true;
    if (!head_sent_) return inner_->respond(std::move(response));
    inner_->write(net::sse_event(response.body));
    inner_->end_stream();
}

void PatientExchange::begin_stream(int status, net::HttpHeaders headers) {
    timer_.cancel();
    answer_begun_ = true;
    if (!head_sent_) return inner_->begin_stream(status, std::move(headers));
    failed_late_ = status != 200;
}

void PatientExchange::write(std::string data) {
    if (!failed_late_) return inner_->write(std::move(data));
    if (late_error_.size() + data.size() <= limits::kSseEventBytes) late_error_ += data;
}

void PatientExchange::end_stream() {
    if (failed_late_) inner_->write(net::sse_event(late_error_));
    inner_->end_stream();
}

}  // namespace sluice::gateway
