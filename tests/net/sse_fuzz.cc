// Arbitrary bytes as an event stream, in one piece and byte by byte: the same events, and each of
// them survives being written and read again.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "net/sse.h"

namespace {

using sluice::net::SseParser;

using Events = std::vector<SseParser::Event>;

Events parse(std::string_view stream, std::size_t piece) {
    SseParser parser;
    Events events;
    while (!stream.empty()) {
        const std::string_view chunk = stream.substr(0, piece);
        stream.remove_prefix(chunk.size());
        if (!parser.feed(chunk, [&](const SseParser::Event& event) { events.push_back(event); })) {
            break;
        }
    }
    return events;
}

void check_equal(const Events& a, const Events& b, const char* what) {
    const bool equal = std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const auto& x, const auto& y) { return x.name == y.name && x.data == y.data; });
    if (equal) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view stream(reinterpret_cast<const char*>(data), size);
    const Events events = parse(stream, size);
    check_equal(events, parse(stream, 1), "the pieces change the events");

    std::string written;
    for (const auto& event : events) written += sluice::net::sse_event(event.data, event.name);
    check_equal(events, parse(written, 3), "an event changes on its way");
    return 0;
}
