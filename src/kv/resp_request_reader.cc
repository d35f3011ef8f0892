#include "kv/resp_request_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kv/resp_inline.h"

namespace sluice::kv {
namespace {

// Taken on trust; more room is made as arguments come.
constexpr std::size_t kArgumentsAtOnce = 16;

}  // namespace

RespRequestReader::Status RespRequestReader::read(std::string_view& data) {
    Status status = Status::kMore;
    while (status == Status::kMore && !data.empty()) {
        switch (stage_) {
            case Stage::kStart:
            case Stage::kLength: status = read_line(data); break;
            case Stage::kText:
            case Stage::kTextEnd: status = read_text(data); break;
            case Stage::kFailed: return Status::kError;
        }
    }
    return status;
}

std::vector<RespText> RespRequestReader::take() {
    held_bytes_ = 0;
    return std::exchange(arguments_, {});
}

std::span<char> RespRequestReader::room() const {
    return stage_ == Stage::kText ? text_.room() : std::span<char>();
}

RespRequestReader::Status RespRequestReader::read_line(std::string_view& data) {
    switch (line_.read(data, bounds_.line_bytes)) {
        case RespLineReader::Status::kMore: return Status::kMore;
        case RespLineReader::Status::kTooLong:
            return fail(stage_ == Stage::kStart ? "too big inline request"
                                                : "too big bulk count string");
        case RespLineReader::Status::kLine: break;
    }
    return stage_ == Stage::kStart ? start(line_.line()) : begin_text(line_.line());
}

RespRequestReader::Status RespRequestReader::start(std::string_view line) {
    if (!line.starts_with('*')) return start_inline(line);
    const auto count = parse_resp_integer(line.substr(1));
    if (!count || *count > static_cast<std::int64_t>(bounds_.elements))
        return fail("invalid multibulk length");
    if (*count <= 0) return Status::kMore;
    missing_ = static_cast<std::size_t>(*count);
    arguments_.reserve(std::min(missing_, kArgumentsAtOnce));
    stage_ = Stage::kLength;
    return Status::kMore;
}

RespRequestReader::Status RespRequestReader::start_inline(std::string_view line) {
    auto words = split_inline_command(line);
    if (!words) return fail(words.error().message());
    if (words->empty()) return Status::kMore;
    for (std::string& word : *words) arguments_.emplace_back(std::move(word));
    return Status::kRequest;
}

RespRequestReader::Status RespRequestReader::begin_text(std::string_view line) {
    if (!line.starts_with('$'))
        return fail("expected '$', got '" + std::string(line.substr(0, 1)) + "'");
    const auto length = parse_resp_integer(line.substr(1));
    if (!length || *length < 0 || *length > static_cast<std::int64_t>(bounds_.text_bytes))
        return fail("invalid bulk length");
    held_bytes_ += sizeof(RespText) + static_cast<std::size_t>(*length);
    if (held_bytes_ > bounds_.total_bytes) {
        return fail("a request of more than " + std::to_string(bounds_.total_bytes) + " bytes");
    }
    text_.begin(static_cast<std::size_t>(*length));
    stage_ = Stage::kText;
    return text_.complete() ? end_text() : Status::kMore;
}

RespRequestReader::Status RespRequestReader::read_text(std::string_view& data) {
    if (stage_ == Stage::kText) {
        text_.collect(data);
        return text_.complete() ? end_text() : Status::kMore;
    }
    switch (line_.read(data, 0)) {
        case RespLineReader::Status::kMore: return Status::kMore;
        case RespLineReader::Status::kTooLong: return fail("an argument is longer than its length");
        case RespLineReader::Status::kLine: break;
    }
    stage_ = Stage::kLength;
    if (--missing_ > 0) return Status::kMore;
    stage_ = Stage::kStart;
    return Status::kRequest;
}

RespRequestReader::Status RespRequestReader::end_text() {
    arguments_.push_back(text_.take());
    stage_ = Stage::kTextEnd;
    return Status::kMore;
}

RespRequestReader::Status RespRequestReader::fail(std::string message) {
    stage_ = Stage::kFailed;
    arguments_ = {};
    held_bytes_ = 0;
    error_ = Error::invalid(std::move(message));
    return Status::kError;
}

}  // namespace sluice::kv
