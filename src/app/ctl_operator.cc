#include "app/ctl_operator.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

namespace sluice::app {

net::HttpHeaders operator_headers(const std::string& why) {
    const passwd* const user = ::getpwuid(::getuid());
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    net::HttpHeaders headers{
        {"x-sluice-by", fmt::format("{}@{}", user == nullptr ? "?" : user->pw_name, host.data())}};
    std::string line = why;
    // A header is one line.
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20 || c == '\x7F') c = ' ';
    if (!line.empty()) headers.set("x-sluice-why", std::move(line));
    return headers;
}

}  // namespace sluice::app
