#include "worker/answers.h"

#include <utility>

namespace sluice::worker {

net::HttpResponse error_answer(int status, const port::PortError& error) {
    net::HttpResponse response = net::HttpResponse::json(status, port::to_json(error));
    if (status == 503) response.headers.add("Retry-After", "1");
    return response;
}

net::HttpResponse error_answer(int status, std::string_view code, std::string message,
                               std::string param) {
    return error_answer(
        status,
        {.message = std::move(message), .code = std::string(code), .param = std::move(param)});
}

net::HttpResponse http_error_answer(int status, std::string_view message) {
    std::string_view code = port::kInvalidRequest;
    if (status == 413) code = port::kPayloadTooLarge;
    if (status >= 500) code = port::kInternal;
    return error_answer(status, code, std::string(message));
}

}  // namespace sluice::worker
