#include "app/http_call.h"

#include <chrono>
#include <utility>

#include "base/limits.h"

namespace sluice::app {

Result<HttpAnswer> fetch(net::EventLoop& loop, net::HttpClient& client, net::ClientRequest request,
                         const BodySink& sink) {
    Result<HttpAnswer> answer = HttpAnswer{};
    bool done = false;
    const auto fail = [&](const Error& error) {
        answer = std::unexpected(error);
        done = true;
    };
    const auto take = [&](std::string_view data) {
        if (done) return;
        if (sink && answer->status / 100 == 2) return sink(data);
        answer->body += data;
        if (answer->body.size() > limits::kAdminAnswerBytes)
            fail(Error::invalid("the answer is too long"));
    };
    const auto call = client.start(
        std::move(request),
        {.on_head = [&](int status, const net::HttpHeaders&) { answer->status = status; },
         .on_data = take,
         .on_done = [&] { done = true; },
         .on_error = fail});
    while (!done) loop.run_for(std::chrono::milliseconds(20));
    return answer;
}

}  // namespace sluice::app
