#pragma once

// Writes one answer to its client, in the shape its endpoint and `stream` ask for.

#include <memory>
#include <span>

#include "gateway/request_preparer.h"
#include "gateway/token_pump.h"
#include "net/http_server.h"
#include "protocol/errors.h"
#include "protocol/response.h"

namespace sluice::gateway {

class AnswerWriter {
public:
    virtual ~AnswerWriter() = default;

    /// The engine has taken the request: a stream sends its head now. Later calls do nothing.
    virtual void begin() = 0;
    virtual void write(std::span<const Piece> pieces) = 0;
    virtual void finish(protocol::FinishReason reason, const protocol::Usage& usage) = 0;

    /// A status and a body if nothing was sent yet, else an error event that ends the stream.
    virtual void fail(const protocol::ApiError& error) = 0;

    /// Shows a waiting client that the connection lives; nothing but a comment on a stream.
    virtual void keep_alive() = 0;
};

/// `headers` go out with the answer, whatever becomes of it.
[[nodiscard]] std::unique_ptr<AnswerWriter> make_answer_writer(
    const PreparedRequest& request, std::shared_ptr<net::HttpExchange> exchange,
    protocol::ResponseInfo info, net::HttpHeaders headers);

/// Answers with an error before there is a writer.
void respond_error(net::HttpExchange& exchange, const protocol::ApiError& error,
                   const net::HttpHeaders& headers = {});

}  // namespace sluice::gateway
