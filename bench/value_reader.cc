// A client that costs next to nothing: asks for one key again and again on some connections, and has
// the kernel drop the values instead of copying them. So what is measured is the server; a client that
// reads what it gets computes longer than the server does, and is then what is measured.
//
// usage: value_reader PORT KEY BYTES REPLIES CONNECTIONS

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

[[noreturn]] void fail(std::string_view what) {
    std::fprintf(stderr, "value_reader: %.*s\n", static_cast<int>(what.size()), what.data());
    std::exit(1);
}

int connect_to(int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
        fail("nobody listens there");
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return socket;
}

class Reader {
public:
    Reader(int port, const std::string& key, std::size_t bytes)
        : socket_(connect_to(port)),
          request_("*2\r\n$3\r\nGET\r\n$" + std::to_string(key.size()) + "\r\n" + key + "\r\n"),
          head_("$" + std::to_string(bytes) + "\r\n"),
          reply_bytes_(head_.size() + bytes + 2) {}

    [[nodiscard]] int socket() const { return socket_; }

    void ask() {
        left_ = reply_bytes_;
        if (::send(socket_, request_.data(), request_.size(), 0) != std::ssize(request_))
            fail("the server closed the connection");
    }

    /// Takes what is there; whether it was the rest of a reply.
    bool take() {
        if (left_ == reply_bytes_) check_head();
        const ssize_t got = ::recv(socket_, nullptr, left_, MSG_TRUNC | MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN)) fail("the server closed the connection");
        if (got > 0) left_ -= static_cast<std::size_t>(got);
        return left_ == 0;
    }

private:
    /// Looks at it and leaves it there: it is dropped with the rest.
    void check_head() const {
        std::array<char, 32> seen{};
        const ssize_t got = ::recv(socket_, seen.data(), head_.size(), MSG_PEEK);
        if (got <= 0 || !head_.starts_with({seen.data(), static_cast<std::size_t>(got)}))
            fail("the reply is not a value of that size");
    }

    int socket_;
    std::string request_;
    std::string head_;
    std::size_t reply_bytes_;
    std::size_t left_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) fail("usage: value_reader PORT KEY BYTES REPLIES CONNECTIONS");
    const auto number = [&](int at) { return static_cast<std::size_t>(std::atoll(argv[at])); };
    const std::size_t replies = number(4);
    std::vector<Reader> readers;
    const int epoll = ::epoll_create1(0);
    for (std::size_t i = 0; i < number(5); ++i) {
        readers.emplace_back(static_cast<int>(number(1)), argv[2], number(3));
        epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, readers.back().socket(), &event);
    }
    std::size_t asked = 0;
    for (Reader& reader : readers) {
        if (asked == replies) break;
        reader.ask();
        ++asked;
    }
    for (std::size_t taken = 0; taken < replies;) {
        std::array<epoll_event, 64> events{};
        const int count = ::epoll_wait(epoll, events.data(), std::ssize(events), -1);
        for (int i = 0; i < count; ++i) {
            Reader& reader = readers[events[static_cast<std::size_t>(i)].data.u64];
            if (!reader.take()) continue;
            ++taken;
            if (asked == replies) continue;
            reader.ask();
            ++asked;
        }
    }
}
