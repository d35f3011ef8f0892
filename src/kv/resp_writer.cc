#include "kv/resp_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace sluice::kv {
namespace {

constexpr std::string_view kEnd = "\r\n";
// Below, a copy costs less than another piece in a gathered write.
constexpr std::size_t kSharedFrom = 4 * 1024;
constexpr std::size_t kTextKept = 16 * 1024;

}  // namespace

void RespWriter::put(std::string_view bytes) {
    text_ += bytes;
    bytes_ += bytes.size();
}

void RespWriter::head(char kind, std::int64_t number) {
    std::array<char, 24> line{kind};
    const auto [end, error] = std::to_chars(line.data() + 1, line.data() + line.size(), number);
    put({line.data(), end});
    put(kEnd);
}

void RespWriter::status(std::string_view line) {
    put("+");
    put(line);
    put(kEnd);
}

void RespWriter::error(std::string_view line) {
    put("-");
    const std::size_t start = text_.size();
    put(line);
    std::ranges::replace_if(
        text_.begin() + static_cast<std::ptrdiff_t>(start), text_.end(),
        [](char c) { return c == '\r' || c == '\n'; }, ' ');
    put(kEnd);
}

void RespWriter::integer(std::int64_t value) { head(':', value); }

void RespWriter::text(std::string_view bytes) {
    head('$', static_cast<std::int64_t>(bytes.size()));
    put(bytes);
    put(kEnd);
}

void RespWriter::text(SharedBytes bytes) {
    if (bytes.bytes.size() < kSharedFrom || !bytes.owner) return text(bytes.bytes);
    head('$', static_cast<std::int64_t>(bytes.bytes.size()));
    bytes_ += bytes.bytes.size();
    shared_.push_back({.position = text_.size(), .bytes = std::move(bytes)});
    put(kEnd);
}

void RespWriter::null() { put(version_ == 3 ? "_\r\n" : "$-1\r\n"); }
void RespWriter::null_array() { put(version_ == 3 ? "_\r\n" : "*-1\r\n"); }

void RespWriter::boolean(bool value) {
    if (version_ != 3) return integer(value ? 1 : 0);
    put(value ? "#t\r\n" : "#f\r\n");
}

void RespWriter::array(std::size_t size) { head('*', static_cast<std::int64_t>(size)); }

void RespWriter::set(std::size_t size) {
    head(version_ == 3 ? '~' : '*', static_cast<std::int64_t>(size));
}

void RespWriter::map(std::size_t size) {
    if (version_ == 3) return head('%', static_cast<std::int64_t>(size));
    array(2 * size);
}

void RespWriter::command(std::initializer_list<std::string_view> words) {
    array(words.size());
    for (const std::string_view word : words) text(word);
}

void RespWriter::drain(FunctionRef<void(std::string_view)> on_text,
                       FunctionRef<void(SharedBytes)> on_shared) {
    std::size_t position = 0;
    const std::string_view all = text_;
    for (Shared& shared : shared_) {
        on_text(all.substr(position, shared.position - position));
        position = shared.position;
        on_shared(std::move(shared.bytes));
    }
    if (position < all.size()) on_text(all.substr(position));
    shared_.clear();
    text_.clear();
    if (text_.capacity() > kTextKept) text_ = std::string();
    bytes_ = 0;
}

}  // namespace sluice::kv
