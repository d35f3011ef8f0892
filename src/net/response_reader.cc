#include "net/response_reader.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "base/limits.h"
#include "net/ascii.h"

namespace sluice::net {
namespace {

namespace http = boost::beast::http;
using BeastError = boost::beast::error_code;
using BeastView = boost::beast::string_view;

// See request_reader.cc.
constexpr std::size_t kShortestChunkedBody = 5;
constexpr std::size_t kUsualFields = 8;

}  // namespace

class ResponseReader::Parser final : public http::basic_parser<false> {
public:
    explicit Parser(Expect expect) {
        skip(expect == Expect::kHeadOnly);
        header_limit(limits::kHeaderBytes);
        body_limit(boost::none);  // It is passed on, not collected.
        headers.reserve(kUsualFields);
    }

    int status = 0;
    HttpHeaders headers;
    std::string_view piece;
    std::size_t chunks = 0;
    bool header_done = false;

private:
    void on_request_impl(http::verb /*method*/, BeastView /*text*/, BeastView /*target*/,
                         int /*version*/, BeastError& /*error*/) override {}

    void on_response_impl(int code, BeastView /*reason*/, int /*version*/,
                          BeastError& /*error*/) override {
        status = code;
    }

    void on_field_impl(http::field name, BeastView name_text, BeastView value_text,
                       BeastError& error) override {
        if (header_done) return;  // Trailers mean nothing here.
        const std::string_view value(value_text.data(), value_text.size());
        const bool unknown_coding =
            name == http::field::transfer_encoding && !equals_ignoring_case(value, "chunked");
        if (headers.size() == limits::kHeaderFields || unknown_coding) {
            error = http::error::bad_value;
            return;
        }
        headers.add({name_text.data(), name_text.size()}, std::string(value));
    }

    void on_header_impl(BeastError& /*error*/) override { header_done = true; }

    void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                           BeastError& /*error*/) override {}

    std::size_t on_body_impl(BeastView body, BeastError& /*error*/) override {
        piece = {body.data(), body.size()};
        return body.size();
    }

    void on_chunk_header_impl(std::uint64_t /*size*/, BeastView /*extensions*/,
                              BeastError& /*error*/) override {
        ++chunks;
    }

    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastView body,
                                   BeastError& /*error*/) override {
        piece = {body.data(), body.size()};
        return body.size();
    }

    void on_finish_impl(BeastError& /*error*/) override {}
};

ResponseReader::ResponseReader(Expect expect)
    : expect_(expect), parser_(std::make_unique<Parser>(expect)) {}
ResponseReader::~ResponseReader() = default;

void ResponseReader::feed(std::string_view data) {
    started_ = started_ || !data.empty();
    if (kept_.empty()) {
        input_ = data;
        return;
    }
    kept_ += data;
    input_ = kept_;
}

ResponseReader::Step ResponseReader::next() {
    while (true) {
        if (parser_->is_done()) return finish();
        const bool first_chunk = parser_->header_done && parser_->chunked() && parser_->chunks == 0;
        if (input_.size() < (first_chunk ? kShortestChunkedBody : 1)) return need_more();
        if (const std::optional<Step> step = put()) return *step;
    }
}

/// One move of the parser; nothing if there was nothing to report.
std::optional<ResponseReader::Step> ResponseReader::put() {
    const bool in_header = !parser_->header_done;
    BeastError error;
    const std::size_t used = parser_->put({input_.data(), input_.size()}, error);
    input_.remove_prefix(used);
    if (in_header) header_bytes_ += used;
    if (header_bytes_ > limits::kHeaderBytes || error == http::error::header_limit) {
        return fail(ErrorCode::kInvalid, "the header of the answer is larger than " +
                                             std::to_string(limits::kHeaderBytes) + " bytes");
    }
    if (error == http::error::need_more) {
        if (used > 0) return std::nullopt;
        return need_more();
    }
    if (error) return fail(ErrorCode::kInvalid, "the answer is not valid HTTP: " + error.message());
    if (in_header && parser_->header_done) return after_header();
    data_ = std::exchange(parser_->piece, {});
    if (data_.empty()) return std::nullopt;
    return Step::kData;
}

std::optional<ResponseReader::Step> ResponseReader::after_header() {
    if (parser_->status == 101) {
        return fail(ErrorCode::kInvalid, "the answer changes the protocol, which nobody asked for");
    }
    if (parser_->status / 100 == 1) {  // "100 Continue" and its like come before the answer.
        parser_ = std::make_unique<Parser>(expect_);
        return std::nullopt;
    }
    status_ = parser_->status;
    headers_ = std::move(parser_->headers);
    return Step::kHead;
}

ResponseReader::Step ResponseReader::need_more() {
    // What is left begins a line of the header or of a chunk. No such line is this long.
    if (input_.size() > limits::kHeaderBytes) {
        return fail(ErrorCode::kInvalid, "the answer has a line that does not end");
    }
    kept_ = std::string(std::exchange(input_, {}));
    return Step::kNeedMore;
}

ResponseReader::Step ResponseReader::finish() {
    reusable_ = parser_->keep_alive() && input_.empty() && !parser_->need_eof();
    return Step::kDone;
}

ResponseReader::Step ResponseReader::end_of_input() {
    const auto cut = [&](const char* what) { return fail(ErrorCode::kUnavailable, what); };
    if (!parser_->got_some()) return cut("the connection was closed before the answer");
    if (!parser_->header_done) return cut("the connection was closed within the answer's header");
    if (parser_->is_done()) return finish();
    BeastError error;
    parser_->put_eof(error);
    if (error) return cut("the connection was closed before the end of the answer");
    reusable_ = false;
    return Step::kDone;
}

ResponseReader::Step ResponseReader::fail(ErrorCode code, std::string message) {
    error_ = Error(code, std::move(message));
    return Step::kFailed;
}

}  // namespace sluice::net
