#include "app/up_ports.h"

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <string>

#include "base/unique_fd.h"

namespace sluice::app {
namespace {

/// 0, or the errno that keeps us from listening there.
int try_bind(const addrinfo& address) {
    const UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return errno;
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

HostPort admin_beside(const HostPort& listen, const HostPort& admin) {
    HostPort next{admin.host, 0};
    if (listen.port == 0 || listen.port == std::numeric_limits<std::uint16_t>::max()) return next;
    next.port = static_cast<std::uint16_t>(listen.port + 1);
    if (!check_port_free(next)) next.port = 0;
    return next;
}

}  // namespace

Result<void> check_port_free(const HostPort& address) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string place = to_string(address);
    const int failed =
        ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    if (failed != 0) {
        return std::unexpected(Error(ErrorCode::kUnavailable, ::gai_strerror(failed), place));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    const int error = try_bind(*found);
    if (error == 0) return {};
    if (error != EADDRINUSE) return std::unexpected(Error::io("cannot listen", error, place));
    return std::unexpected(
        Error(ErrorCode::kUnavailable, "the port is taken by another program", place));
}

Result<GatewayConfig> choose_ports(GatewayConfig gateway, std::optional<std::uint16_t> port) {
    if (port) {
        gateway.listen.value.port = *port;
        gateway.listen.place = "--port";
        if (gateway.admin.place == "default") {
            gateway.admin = {admin_beside(*gateway.listen, *gateway.admin), "--port"};
        }
    }
    if (gateway.listen->port != 0 && gateway.listen->port == gateway.admin->port) {
        return std::unexpected(
            Error::invalid(fmt::format("port {} is the admin address's too ({})",
                                       gateway.listen->port, gateway.admin.place),
                           gateway.listen.place));
    }
    for (const HostPort& address : {*gateway.listen, *gateway.admin}) {
        if (const auto free = check_port_free(address); !free) {
            return std::unexpected(free.error());
        }
    }
    return gateway;
}

}  // namespace sluice::app
