#include "kvnode/node_answers.h"

#include <utility>

#include "port/port_error.h"

namespace sluice::kvnode {

net::HttpResponse error_answer(int status, std::string_view code, std::string message,
                               std::string param) {
    const port::PortError error{
        .message = std::move(message), .code = std::string(code), .param = std::move(param)};
    net::HttpResponse response = net::HttpResponse::json(status, port::to_json(error));
    if (status == 503) response.headers.add("Retry-After", "1");
    return response;
}

net::HttpResponse http_error_answer(int status, std::string_view message) {
    std::string_view code = port::kInvalidRequest;
    if (status == 413) code = port::kPayloadTooLarge;
    if (status >= 500) code = port::kInternal;
    return error_answer(status, code, std::string(message));
}

}  // namespace sluice::kvnode
