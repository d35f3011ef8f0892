#include "net/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/net_limits.h"
#include "net/ascii.h"

namespace sluice::net {
namespace {

namespace http = boost::beast::http;
using BeastError = boost::beast::error_code;
using BeastView = boost::beast::string_view;

constexpr std::size_t kFreeBytesAChunk = 16;
// Beast 1.81 asserts that five bytes are there when it comes back to the last chunk; every
// chunked body has at least so many.
constexpr std::size_t kShortestChunkedBody = 5;
constexpr std::size_t kFirstBodyBytes = 64 * 1024;
constexpr std::size_t kUsualFields = 8;

std::optional<unsigned char> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned char>(c - '0');
    const char lower = ascii_lower(c);
    if (lower >= 'a' && lower <= 'f') return static_cast<unsigned char>(lower - 'a' + 10);
    return std::nullopt;
}

bool percent_decode(std::string_view text, std::string& out) {
    out.clear();
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= text.size()) return false;
            const auto high = hex_digit(text[i + 1]);
            const auto low = hex_digit(text[i + 2]);
            if (!high || !low) return false;
            c = static_cast<char>(*high << 4 | *low);
            i += 2;
        }
        if (is_control(c)) return false;
        out += c;
    }
    return true;
}

}  // namespace

bool split_target(std::string_view target, std::string& path, std::string& query) {
    constexpr std::string_view kScheme = "http://";
    if (target.size() > kScheme.size() &&
        equals_ignoring_case(target.substr(0, kScheme.size()), kScheme)) {
        target.remove_prefix(kScheme.size());
        const std::size_t slash = target.find_first_of("/?");
        if (slash == std::string_view::npos || target[slash] == '?') return false;
        target.remove_prefix(slash);
    }
    if (!target.starts_with('/') && target != "*") return false;
    const std::size_t question = target.find('?');
    if (question != std::string_view::npos) query = target.substr(question + 1);
    return percent_decode(target.substr(0, question), path);
}

class RequestReader::Parser final : public http::basic_parser<true> {
public:
    Parser(HttpRequest& request, const Limits& limits) : request_(request) {
        constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
        header_limit(static_cast<std::uint32_t>(std::min(limits.header_bytes, kMost)));
        body_limit(limits.body_bytes);
    }

    /// Why a callback stopped the parser, where Beast has no word for it.
    Failure refused;
    std::size_t chunks = 0;
    bool header_done = false;
    bool http10 = false;
    bool expects_continue = false;

private:
    void refuse(int status, std::string_view message, BeastError& error) {
        refused = {.status = status, .message = std::string(message)};
        error = http::error::bad_value;
    }

    void on_request_impl(http::verb /*method*/, BeastView method, BeastView target, int version,
                         BeastError& error) override {
        request_.method.assign(method.data(), method.size());
        http10 = version == 10;
        if (!split_target({target.data(), target.size()}, request_.path, request_.query)) {
            refuse(400, "the request target is malformed", error);
        }
    }

    void on_response_impl(int /*code*/, BeastView /*reason*/, int /*version*/,
                          BeastError& /*error*/) override {}

    void on_field_impl(http::field name, BeastView name_text, BeastView value_text,
                       BeastError& error) override {
        if (header_done) return;  // Trailers mean nothing here.
        if (request_.headers.size() == limits::kHeaderFields) {
            return refuse(431, "the header has too many fields", error);
        }
        const std::string_view value(value_text.data(), value_text.size());
        if (name == http::field::host) ++hosts_;
        if (name == http::field::transfer_encoding) {
            if (!equals_ignoring_case(value, "chunked")) {
                return refuse(400, "the only transfer coding understood is \"chunked\"", error);
            }
            if (http10) return refuse(400, "HTTP/1.0 has no transfer codings", error);
        }
        if (name == http::field::expect) {
            if (!equals_ignoring_case(value, "100-continue")) {
                return refuse(417, "the only expectation understood is \"100-continue\"", error);
            }
            expects_continue = !http10;
        }
        request_.headers.add({name_text.data(), name_text.size()}, std::string(value));
    }

    void on_header_impl(BeastError& error) override {
        header_done = true;
        if (hosts_ > 1) return refuse(400, "the header has more than one Host field", error);
        if (hosts_ == 0 && !http10) refuse(400, "the header has no Host field", error);
    }

    void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                           BeastError& /*error*/) override {}

    std::size_t on_body_impl(BeastView body, BeastError& /*error*/) override {
        append_body(body, static_cast<std::size_t>(content_length().value_or(0)));
        return body.size();
    }

    void on_chunk_header_impl(std::uint64_t /*size*/, BeastView /*extensions*/,
                              BeastError& /*error*/) override {
        ++chunks;
    }

    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastView body,
                                   BeastError& /*error*/) override {
        append_body(body, 0);
        return body.size();
    }

    void on_finish_impl(BeastError& /*error*/) override {}

    /// Grows in few steps towards the announced length, but never far ahead of what has come.
    void append_body(BeastView data, std::size_t announced) {
        std::string& body = request_.body;
        const std::size_t needed = body.size() + data.size();
        if (needed > body.capacity()) {
            const std::size_t step =
                std::max({needed, kFirstBodyBytes, limits::kBodyReservedAhead * body.size()});
            const std::size_t size = announced == 0 ? std::max(needed, 2 * body.size())
                                                    : std::min(std::max(announced, needed), step);
            body.reserve(size + limits::kBodySlackBytes);
        }
        body.append(data.data(), data.size());
    }

    HttpRequest& request_;
    int hosts_ = 0;
};

RequestReader::RequestReader(Limits limits) : limits_(limits) {}
RequestReader::~RequestReader() = default;

RequestReader::Status RequestReader::feed(std::string_view data) {
    std::size_t used = 0;
    if (kept_.empty()) {
        const Status status = advance(data, used);
        kept_ = data.substr(used);
        return status;
    }
    kept_ += data;
    const Status status = advance(kept_, used);
    kept_.erase(0, used);
    if (kept_.empty()) kept_ = std::string();  // An idle connection holds no buffer.
    return status;
}

RequestReader::Phase RequestReader::phase() const {
    if (parser_ == nullptr) return Phase::kIdle;
    return parser_->header_done ? Phase::kBody : Phase::kHeader;
}

bool RequestReader::take_continue() {
    return std::exchange(continue_pending_, false) && kept_.empty() && request_.body.empty();
}

HttpRequest RequestReader::take_request() { return std::exchange(request_, {}); }

RequestReader::Status RequestReader::advance(std::string_view data, std::size_t& used) {
    if (parser_ == nullptr) skip_empty_lines(data, used);
    while (used < data.size()) {
        if (parser_ == nullptr) {
            if (data.substr(used) == "\r") break;  // Perhaps another empty line.
            parser_ = std::make_unique<Parser>(request_, limits_);
            request_.headers.reserve(kUsualFields);
        }
        std::size_t consumed = 0;
        const Status status = step(data.substr(used), consumed);
        used += consumed;
        if (status != Status::kNeedMore) return status;
        if (consumed == 0) break;
    }
    if (header_bytes_ > limits_.header_bytes) return fail(431, "the header is too large");
    return Status::kNeedMore;
}

// RFC 9112, section 2.2: empty lines before a request are to be ignored.
void RequestReader::skip_empty_lines(std::string_view data, std::size_t& used) {
    while (data.substr(used).starts_with("\r\n")) {
        used += 2;
        header_bytes_ += 2;
    }
}

/// One move of the parser: a line, a field or a piece of the body. `used` stays 0 if it needs more.
RequestReader::Status RequestReader::step(std::string_view rest, std::size_t& used) {
    const bool in_header = !parser_->header_done;
    if (!in_header && parser_->chunked() && parser_->chunks == 0 &&
        rest.size() < kShortestChunkedBody) {
        return Status::kNeedMore;
    }
    BeastError error;
    used = parser_->put({rest.data(), rest.size()}, error);
    const std::string_view consumed = rest.substr(0, used);
    const std::size_t unread = rest.size() - used;
    if (!error || error == http::error::need_more) {
        const Status checked = in_header ? check_header_step(consumed, unread)
                                         : check_framing(used, error ? unread : 0);
        if (checked == Status::kFailed) return checked;
        if (parser_->is_done()) return complete();
        return Status::kNeedMore;
    }
    if (!parser_->refused.message.empty()) {
        return fail(parser_->refused.status, parser_->refused.message);
    }
    if (error == http::error::header_limit) return fail(431, "the header is too large");
    if (error == http::error::body_limit) {
        return fail(413,
                    "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes");
    }
    return fail(400, "the request is not valid HTTP: " + error.message());
}

RequestReader::Status RequestReader::check_header_step(std::string_view consumed,
                                                       std::size_t unread) {
    header_bytes_ += consumed.size();
    const std::size_t pending = parser_->header_done ? 0 : unread;
    if (header_bytes_ + pending > limits_.header_bytes) {
        return fail(431,
                    "the header is larger than " + std::to_string(limits_.header_bytes) + " bytes");
    }
    // Beast joins folded fields; other parsers end them. RFC 9112, section 5.2 lets us refuse.
    for (const char c : consumed) {
        if (last_header_byte_ == '\n' && (c == ' ' || c == '\t')) {
            return fail(400, "the header has a folded field");
        }
        last_header_byte_ = c;
    }
    if (parser_->header_done) continue_pending_ = parser_->expects_continue;
    return Status::kNeedMore;
}

/// `pending` bytes begin a chunk's line or the trailer, whose end has not come yet.
RequestReader::Status RequestReader::check_framing(std::size_t consumed, std::size_t pending) {
    if (!parser_->chunked()) return Status::kNeedMore;
    body_wire_bytes_ += consumed;
    const std::size_t overhead = body_wire_bytes_ - request_.body.size() + pending;
    const std::size_t allowed = limits::kChunkOverheadBytes + kFreeBytesAChunk * parser_->chunks;
    if (overhead > allowed) return fail(400, "the chunk framing is too long");
    return Status::kNeedMore;
}

RequestReader::Status RequestReader::fail(int status, std::string_view message) {
    failure_ = {.status = status, .message = std::string(message)};
    parser_.reset();
    request_ = {};
    return Status::kFailed;
}

RequestReader::Status RequestReader::complete() {
    keep_alive_ = parser_->keep_alive();
    http10_ = parser_->http10;
    parser_.reset();
    header_bytes_ = 0;
    body_wire_bytes_ = 0;
    last_header_byte_ = 0;
    continue_pending_ = false;
    return Status::kComplete;
}

}  // namespace sluice::net
