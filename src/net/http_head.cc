#include "net/http_head.h"

#include <ostream>  // Beast's status.hpp needs it to be complete.

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <span>

#include "net/ascii.h"

namespace sluice::net {
namespace {

bool frames_the_message(std::string_view name) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer"});
    return std::ranges::any_of(
        kNames, [&](std::string_view known) { return equals_ignoring_case(known, name); });
}

void append_number(std::string& out, std::size_t value, int base) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base);
    out.append(digits.data(), end.ptr);
}

void append_status_line(std::string& out, int status) {
    out += "HTTP/1.1 ";
    append_number(out, static_cast<std::size_t>(status), 10);
    out += ' ';
    out += std::string_view(boost::beast::http::obsolete_reason(
        boost::beast::http::int_to_status(static_cast<unsigned>(status))));
    out += "\r\n";
}

}  // namespace

void append_fields(std::string& out, const HttpHeaders& headers) {
    for (const auto& [name, value] : headers) {
        if (!is_token(name) || frames_the_message(name)) continue;
        out.append(name).append(": ").append(value).append("\r\n");
        const auto text = std::span(out).last(value.size() + 2).first(value.size());
        std::ranges::replace_if(text, [](char c) { return is_control(c) && c != '\t'; }, ' ');
    }
}

std::string response_head(const ResponseHead& head, const HttpHeaders& headers) {
    std::string out;
    out.reserve(256);
    append_status_line(out, head.status);
    append_fields(out, headers);
    if (!head.date.empty()) out.append("Date: ").append(head.date).append("\r\n");
    if (head.framing == BodyFraming::kLength) {
        out += "Content-Length: ";
        append_number(out, head.body_bytes, 10);
        out += "\r\n";
    }
    if (head.framing == BodyFraming::kChunked) out += "Transfer-Encoding: chunked\r\n";
    if (head.after == AfterAnswer::kClose) out += "Connection: close\r\n";
    if (head.after == AfterAnswer::kKeepOpenHttp10) out += "Connection: keep-alive\r\n";
    out += "\r\n";
    return out;
}

std::string http_date(std::int64_t unix_seconds) {
    constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto seconds = static_cast<std::time_t>(unix_seconds);
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    std::array<char, 64> text{};
    // Names by hand: strftime's follow the process's locale.
    std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                  kDays[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                  kMonths[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                  utc.tm_min, utc.tm_sec);
    return text.data();
}

void append_chunk_size(std::string& out, std::size_t bytes) {
    append_number(out, bytes, 16);
    out += "\r\n";
}

}  // namespace sluice::net
