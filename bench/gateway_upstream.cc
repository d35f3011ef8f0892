// Fake engines for bench/gateway.py: Chat Completions from prepared bytes, as cheap as can be.
//
//   gateway_upstream PORT...
//
// One thread serves all ports; each stands for one engine. A request orders its answer in its "user"
// field, which every gateway passes on: "bench:TOKENS:FIRST_US:DELAY_US". TOKENS 0 is an answer of
// 200 bytes in one piece; others are a stream of so many events, the first after FIRST_US, each in a
// write of its own and DELAY_US after the one before. An event's text is the time at which it was
// written, in nanoseconds of CLOCK_MONOTONIC, for whoever reads it to tell how long it took.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::string answer(std::string_view type, std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

const std::string kModels =
    answer("application/json", R"({"object":"list","data":[{"id":"bench","object":"model"}]})");
const std::string kCompletion = answer(
    "application/json",
    R"({"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"bench","choices":[)"
    R"({"index":0,"message":{"role":"assistant","content":"It is."},"finish_reason":"stop"}],)"
    R"("usage":{"prompt_tokens":9,"completion_tokens":3}})");
constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kBefore =
    R"(data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench",)"
    R"("choices":[{"index":0,"delta":{"content":")";
constexpr std::string_view kAfter = "\"},\"finish_reason\":null}]}\n\n";
constexpr std::string_view kLast =
    R"(data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench",)"
    "\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

std::string chunk(std::string_view data) {
    std::array<char, 20> size{};
    const auto end = std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
    return std::string(size.data(), end) + "\r\n" + std::string(data) + "\r\n";
}

struct Connection {
    std::string input;
    std::uint64_t id = 0;  ///< Descriptors are used again; ids are not.
    std::size_t left = 0;  ///< Events of the running stream.
    std::int64_t delay_ns = 0;
};

struct Due {
    std::int64_t at;
    int fd;
    std::uint64_t id;
    bool operator<(const Due& other) const { return at > other.at; }
};

class Upstream {
public:
    explicit Upstream(const std::vector<std::uint16_t>& ports) {
        for (const std::uint16_t port : ports) listen_on(port);
    }

    [[noreturn]] void run() {
        std::array<epoll_event, 256> events{};
        while (true) {
            const int count =
                epoll_pwait2(epoll_, events.data(), events.size(), patience(), nullptr);
            for (int i = 0; i < count; ++i) {
                const int fd = events[static_cast<std::size_t>(i)].data.fd;
                if (listeners_.contains(fd)) {
                    accept_from(fd);
                } else {
                    read_from(fd);
                }
            }
            write_due();
        }
    }

private:
    void listen_on(std::uint16_t port) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        const int on = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            listen(fd, 4096) != 0) {
            std::perror("gateway_upstream: listen");
            std::exit(1);
        }
        listeners_.emplace(fd, port);
        watch(fd);
    }

    void watch(int fd) {
        epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }

    void accept_from(int listener) {
        while (true) {
            const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
            if (fd < 0) return;
            const int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            connections_[fd].id = ++ids_;
            watch(fd);
        }
    }

    void read_from(int fd) {
        static std::array<char, 256 * 1024> buffer;
        const ssize_t got = read(fd, buffer.data(), buffer.size());
        if (got <= 0) {
            connections_.erase(fd);
            close(fd);
            return;
        }
        Connection& connection = connections_[fd];
        connection.input.append(buffer.data(), static_cast<std::size_t>(got));
        take_request(fd, connection);
    }

    void take_request(int fd, Connection& connection) {
        const std::string_view input = connection.input;
        const std::size_t head = input.find("\r\n\r\n");
        if (head == std::string_view::npos) return;
        std::size_t length = 0;
        // Gateways spell it in their own ways.
        for (const std::string_view name : {"Content-Length: ", "content-length: "}) {
            const std::size_t at = input.substr(0, head).find(name);
            if (at != std::string_view::npos) length = number_at(input, at + name.size());
        }
        if (input.size() < head + 4 + length) return;
        serve(fd, connection, input.substr(head + 4, length));
        connection.input.clear();
    }

    static std::size_t number_at(std::string_view text, std::size_t at) {
        std::size_t number = 0;
        std::from_chars(text.data() + at, text.data() + text.size(), number);
        return number;
    }

    void serve(int fd, Connection& connection, std::string_view body) {
        constexpr std::string_view kOrder = "\"bench:";
        // Behind the prompt, as the load generator writes it.
        const std::size_t at = body.rfind(kOrder);
        if (at == std::string_view::npos) return send_all(fd, kModels);
        const std::size_t second = body.find(':', at + kOrder.size());
        const std::size_t third = body.find(':', second + 1);
        connection.left = number_at(body, at + kOrder.size());
        if (connection.left == 0) return send_all(fd, kCompletion);
        connection.delay_ns = static_cast<std::int64_t>(number_at(body, third + 1)) * 1000;
        send_all(fd, kStreamHead);
        const auto first = static_cast<std::int64_t>(number_at(body, second + 1)) * 1000;
        due_.push({.at = now_ns() + first, .fd = fd, .id = connection.id});
    }

    /// What does not fit into the socket's buffer is lost; the load generator notices.
    static void send_all(int fd, std::string_view data) {
        (void)send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    }

    [[nodiscard]] const timespec* patience() {
        if (due_.empty()) return nullptr;
        const std::int64_t left = std::max<std::int64_t>(due_.top().at - now_ns(), 0);
        patience_ = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
        return &patience_;
    }

    void write_due() {
        while (!due_.empty() && due_.top().at <= now_ns()) {
            const Due due = due_.top();
            due_.pop();
            const auto found = connections_.find(due.fd);
            if (found == connections_.end() || found->second.id != due.id) continue;
            Connection& connection = found->second;
            write_event(due.fd);
            if (--connection.left == 0) {
                send_all(due.fd, chunk(kLast) + "0\r\n\r\n");
            } else {
                due_.push({.at = due.at + connection.delay_ns, .fd = due.fd, .id = due.id});
            }
        }
    }

    static void write_event(int fd) {
        std::string event(kBefore);
        event.append(std::to_string(now_ns())).append(kAfter);
        send_all(fd, chunk(event));
    }

    const int epoll_ = epoll_create1(0);
    std::unordered_map<int, std::uint16_t> listeners_;
    std::unordered_map<int, Connection> connections_;
    std::priority_queue<Due> due_;
    timespec patience_{};
    std::uint64_t ids_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::uint16_t> ports;
    for (int i = 1; i < argc; ++i) ports.push_back(static_cast<std::uint16_t>(std::atoi(argv[i])));
    Upstream(ports).run();
}
