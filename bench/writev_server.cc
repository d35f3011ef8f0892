// The limit of a cache node: answers GET of any name with one value from memory, by one gathered write
// after the other, and does nothing else. Prints its port.
//
// usage: writev_server BYTES

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kNoSuchCommand = "-ERR GET alone is known\r\n";

struct Client {
    std::string input;
    std::size_t answers = 0;  ///< Values that it still has to get, the one on its way included.
    std::size_t sent = 0;     ///< Bytes of that one.
    bool watched = false;     ///< For room in the kernel's buffer.
};

/// Takes whole requests from the front of `input`; how many of them were GETs. Others are refused at
/// once: a benchmark asks for settings before it begins.
std::size_t take_requests(int socket, std::string& input) {
    std::size_t gets = 0;
    std::size_t at = 0;
    while (at < input.size() && input[at] == '*') {
        std::size_t next = input.find("\r\n", at);
        if (next == std::string::npos) break;
        const int words = std::atoi(&input[at + 1]);
        std::string first;
        for (int i = 0; i < words && next != std::string::npos; ++i) {
            const std::size_t line = next + 2;
            const std::size_t end = input.find("\r\n", line);
            if (end == std::string::npos) break;
            const auto bytes = static_cast<std::size_t>(std::atoi(&input[line + 1]));
            if (input.size() < end + 2 + bytes + 2) next = std::string::npos;
            if (next != std::string::npos) next = end + 2 + bytes;
            if (i == 0) first = input.substr(end + 2, bytes);
            if (i + 1 == words && next != std::string::npos) at = next + 2;
        }
        if (at != next + 2) break;  // The rest of it is still to come.
        if (first == "GET") {
            ++gets;
        } else {
            (void)!::write(socket, kNoSuchCommand.data(), kNoSuchCommand.size());
        }
    }
    input.erase(0, at);
    return gets;
}

/// Sends what the kernel takes; false if the connection is broken.
bool send_answers(int socket, Client& client, std::string_view head, std::string_view value) {
    const std::string_view end = "\r\n";
    while (client.answers > 0) {
        std::array<iovec, 3> pieces{};
        int count = 0;
        std::size_t before = client.sent;
        for (const std::string_view piece : {head, value, end}) {
            const std::size_t gone = std::min(before, piece.size());
            before -= gone;
            if (gone == piece.size()) continue;
            pieces[static_cast<std::size_t>(count++)] = {
                .iov_base = const_cast<char*>(piece.data() + gone), .iov_len = piece.size() - gone};
        }
        const ssize_t wrote = ::writev(socket, pieces.data(), count);
        if (wrote < 0) return errno == EAGAIN;
        client.sent += static_cast<std::size_t>(wrote);
        if (client.sent < head.size() + value.size() + end.size()) continue;
        client.sent = 0;
        --client.answers;
    }
    return true;
}

bool read_requests(int socket, Client& client) {
    std::array<char, 16 * 1024> buffer;
    const ssize_t got = ::read(socket, buffer.data(), buffer.size());
    if (got <= 0) return got < 0 && errno == EAGAIN;
    client.input.append(buffer.data(), static_cast<std::size_t>(got));
    client.answers += take_requests(socket, client.input);
    return true;
}

int listen_anywhere() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
        ::listen(listener, 128) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
        std::exit(1);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return listener;
}

void watch(int epoll, int operation, int socket, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = socket}};
    ::epoll_ctl(epoll, operation, socket, &event);
}

int accept_client(int epoll, int listener) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    watch(epoll, EPOLL_CTL_ADD, socket, EPOLLIN);
    return socket;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 1;
    const std::string value(static_cast<std::size_t>(std::atol(argv[1])), 'x');
    const std::string head = "$" + std::to_string(value.size()) + "\r\n";
    const int listener = listen_anywhere();
    const int epoll = ::epoll_create1(0);
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
    std::map<int, Client> clients;
    while (true) {
        std::array<epoll_event, 64> events{};
        const int count = ::epoll_wait(epoll, events.data(), std::ssize(events), -1);
        for (int i = 0; i < count; ++i) {
            const int socket = events[static_cast<std::size_t>(i)].data.fd;
            if (socket == listener) {
                clients.emplace(accept_client(epoll, listener), Client{});
                continue;
            }
            Client& client = clients[socket];
            const bool readable = (events[static_cast<std::size_t>(i)].events & ~EPOLLOUT) != 0;
            if ((readable && !read_requests(socket, client)) ||
                !send_answers(socket, client, head, value)) {
                ::close(socket);
                clients.erase(socket);
                continue;
            }
            const bool waits = client.answers > 0;
            if (waits == client.watched) continue;
            client.watched = waits;
            watch(epoll, EPOLL_CTL_MOD, socket, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
        }
    }
}
