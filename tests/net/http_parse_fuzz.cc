// Arbitrary bytes as one connection, in one piece and in pieces: no crash, no unbounded memory, and
// the same requests either way. A request that is two requests for another parser starts there.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "net/request_reader.h"
#include "net/response_reader.h"

namespace {

using sluice::net::HttpRequest;
using sluice::net::RequestReader;
using sluice::net::ResponseReader;

constexpr RequestReader::Limits kLimits{.header_bytes = 8192, .body_bytes = 8192};

void check(bool fact, const char* what) {
    if (fact) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

/// Piece sizes follow from the input, so that a finding can be repeated.
std::size_t next_piece(std::uint32_t& state, std::size_t left) {
    state = state * 1664525 + 1013904223;
    return std::min<std::size_t>(1 + (state >> 24) % 37, left);
}

std::vector<HttpRequest> read_requests(std::string_view wire, std::uint32_t seed) {
    RequestReader reader(kLimits);
    std::vector<HttpRequest> requests;
    while (!wire.empty()) {
        const std::size_t piece = seed == 0 ? wire.size() : next_piece(seed, wire.size());
        auto status = reader.feed(wire.substr(0, piece));
        wire.remove_prefix(piece);
        while (status == RequestReader::Status::kComplete) {
            requests.push_back(reader.take_request());
            check(requests.back().body.size() <= kLimits.body_bytes, "body limit");
            status = reader.resume();
        }
        if (status == RequestReader::Status::kFailed) {
            check(reader.failure().status >= 400 && !reader.failure().message.empty(), "refusal");
            return requests;
        }
        static_cast<void>(reader.take_continue());
        static_cast<void>(reader.phase());
    }
    return requests;
}

struct Response {
    int status = 0;
    std::string body{};
    bool done = false;
};

Response read_response(std::string_view wire, std::uint32_t seed) {
    ResponseReader reader(ResponseReader::Expect::kBody);
    Response response;
    while (!wire.empty()) {
        const std::size_t piece = seed == 0 ? wire.size() : next_piece(seed, wire.size());
        reader.feed(wire.substr(0, piece));
        wire.remove_prefix(piece);
        for (auto step = reader.next(); step != ResponseReader::Step::kNeedMore;
             step = reader.next()) {
            if (step == ResponseReader::Step::kFailed) return response;
            if (step == ResponseReader::Step::kHead) response.status = reader.status();
            if (step == ResponseReader::Step::kData) response.body += reader.data();
            response.done = step == ResponseReader::Step::kDone;
            if (response.done) return response;
        }
    }
    response.done = reader.end_of_input() == ResponseReader::Step::kDone;
    return response;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view wire(reinterpret_cast<const char*>(data), size);
    const std::uint32_t seed = static_cast<std::uint32_t>(size) + 1;

    const auto whole = read_requests(wire, 0);
    const auto pieces = read_requests(wire, seed);
    check(whole.size() == pieces.size(), "the pieces change the number of requests");
    for (std::size_t i = 0; i < whole.size(); ++i) {
        check(whole[i].method == pieces[i].method, "the pieces change a method");
        check(whole[i].path == pieces[i].path, "the pieces change a path");
        check(whole[i].body == pieces[i].body, "the pieces change a body");
        check(whole[i].headers.size() == pieces[i].headers.size(), "the pieces change a header");
    }

    const Response answer = read_response(wire, 0);
    const Response parts = read_response(wire, seed);
    check(answer.done == parts.done, "the pieces change an answer's end");
    if (answer.done) check(answer.body == parts.body, "the pieces change an answer's body");
    return 0;
}
