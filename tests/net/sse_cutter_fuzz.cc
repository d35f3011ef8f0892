// Arbitrary bytes as an event stream to relay, whole and in pieces: every byte comes out once and in
// order, and the events are those that SseParser reads.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "net/sse.h"
#include "net/sse_cutter.h"

namespace {

void check(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

std::vector<std::string> cut(std::string_view stream, std::size_t step) {
    sluice::net::SseCutter cutter;
    std::vector<std::string> events;
    std::string raw;
    for (std::size_t at = 0; at < stream.size(); at += step) {
        const auto fed =
            cutter.feed(stream.substr(at, step), [&](const sluice::net::SseCutter::Piece& piece) {
                raw += piece.raw;
                if (piece.has_data) events.emplace_back(piece.data);
            });
        if (!fed) return events;
    }
    raw += cutter.rest();
    check(raw == stream, "bytes are lost or changed");
    return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view stream(reinterpret_cast<const char*>(data), size);
    std::vector<std::string> parsed;
    sluice::net::SseParser parser;
    if (!parser.feed(stream, [&](const auto& event) { parsed.push_back(event.data); })) return 0;
    check(cut(stream, size == 0 ? 1 : size) == parsed, "the events differ from the parser's");
    check(cut(stream, 1) == parsed, "the pieces change the events");
    check(cut(stream, 7) == parsed, "the pieces change the events");
    return 0;
}
