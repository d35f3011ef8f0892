// Arbitrary bytes as RESP, as requests and as replies, whole and in small pieces: the same messages,
// and each request survives being written and read again. Bounds are small, so that they are met.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kv/resp_reply_reader.h"
#include "kv/resp_request_reader.h"
#include "kv/resp_writer.h"

namespace {

namespace kv = sluice::kv;

constexpr kv::RespBounds kBounds{
    .elements = 64, .text_bytes = 40'000, .total_bytes = 100'000, .line_bytes = 96, .depth = 4};

using Requests = std::vector<std::vector<std::string>>;

void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

/// Gives `reader` a piece, by way of its `room` where it has one, as a socket would.
template <class Reader>
auto read_piece(Reader& reader, std::string_view& piece) {
    const std::span<char> room = reader.room();
    if (room.empty()) return reader.read(piece);
    const std::size_t count = std::min(room.size(), piece.size());
    std::ranges::copy(piece.substr(0, count), room.begin());
    std::string_view placed(room.data(), count);
    piece.remove_prefix(count);
    const auto status = reader.read(placed);
    check(placed.empty(), "bytes in their place are not all taken");
    return status;
}

template <class Reader, class OnMessage>
void read_all(Reader& reader, std::string_view stream, std::size_t piece, OnMessage on_message) {
    while (!stream.empty()) {
        std::string_view data = stream.substr(0, piece);
        stream.remove_prefix(data.size());
        while (!data.empty()) {
            const auto status = read_piece(reader, data);
            check(reader.held_bytes() <= kBounds.total_bytes + kBounds.line_bytes + 1,
                  "more is held than allowed");
            if (status == Reader::Status::kError) return on_message(true);
            if (status != Reader::Status::kMore) on_message(false);
        }
    }
}

Requests requests_of(std::string_view stream, std::size_t piece) {
    kv::RespRequestReader reader(kBounds);
    Requests requests;
    read_all(reader, stream, piece, [&](bool error) {
        auto& words = requests.emplace_back();
        if (error) return words.push_back("error " + reader.error().message());
        for (const kv::RespText& argument : reader.take()) words.emplace_back(argument.view());
        check(!words.empty(), "a request without a command");
    });
    return requests;
}

void show(const kv::RespReply& reply, std::string& out) {
    out += std::to_string(static_cast<int>(reply.type)) + " " + std::to_string(reply.integer) +
           " " + std::to_string(reply.number) + " " + std::string(reply.text.view()) + "[";
    for (const kv::RespReply& element : reply.elements) show(element, out);
    out += "]";
}

std::string replies_of(std::string_view stream, std::size_t piece) {
    kv::RespReplyReader reader(kBounds);
    std::string replies;
    read_all(reader, stream, piece, [&](bool error) {
        if (error) {
            replies += "error " + reader.error().message();
        } else {
            show(reader.take(), replies);
        }
    });
    return replies;
}

std::string written(const Requests& requests) {
    kv::RespWriter writer;
    std::string all;
    for (const auto& words : requests) {
        writer.array(words.size());
        for (const std::string& word : words) writer.text(word);
        writer.drain([&](std::string_view text) { all += text; }, [](const kv::SharedBytes&) {});
    }
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view stream(reinterpret_cast<const char*>(data), size);
    Requests requests = requests_of(stream, size);
    check(requests == requests_of(stream, 1), "pieces of one byte change the requests");
    check(requests == requests_of(stream, 1'000), "pieces change the requests");
    check(replies_of(stream, size) == replies_of(stream, 1),
          "pieces of one byte change the replies");
    check(replies_of(stream, size) == replies_of(stream, 1'000), "pieces change the replies");

    if (!requests.empty() && requests.back().front().starts_with("error ")) requests.pop_back();
    check(requests_of(written(requests), 7) == requests, "a request changes on its way");
    return 0;
}
