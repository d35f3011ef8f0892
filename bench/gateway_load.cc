// The load generator of bench/gateway.py: visits its targets in turn, round by round, and prints what
// it saw as one JSON object a line.
//
//   gateway_load --target NAME=PORT[,PID]... [--connections N] [--prompt-bytes N] [--rounds N]
//                [--tokens N --first-us N --delay-us N] [--ramp-ms N] [--warm-ms N] [--measure-ms N]
//                [--model NAME] [--max-tokens N]
//
// Closed loop: a connection asks again as soon as it has its answer. Without --tokens answers come in
// one piece, else they are streams of so many events (gateway_upstream.cc). Latencies are in
// microseconds; `cpu_us` is the time on the process clock of PID, all threads, within the measured
// window; `*_kib` its resident memory, `before_kib` from before the first connection.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    if (clock_gettime(clock, &now) != 0) return 0;
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}
std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

std::int64_t cpu_ns(int pid) {
    clockid_t clock = 0;
    return pid != 0 && clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

std::int64_t resident_kib(int pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
    return 0;
}

std::int64_t number_at(std::string_view text, std::size_t at, int base = 10) {
    std::int64_t number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number, base);
    return number;
}

struct Options {
    std::vector<std::string> targets;
    std::string model = "bench";
    std::map<std::string, std::int64_t> numbers{
        {"connections", 1}, {"prompt-bytes", 4096}, {"max-tokens", 256}, {"rounds", 3},
        {"tokens", 0},      {"first-us", 0},        {"delay-us", 0},     {"ramp-ms", 0},
        {"warm-ms", 200},   {"measure-ms", 900}};
    [[nodiscard]] std::int64_t operator[](const char* name) const { return numbers.at(name); }
};

std::string request_of(const Options& options, int variant) {
    std::string prompt = "Number " + std::to_string(variant) + ". ";
    while (static_cast<std::int64_t>(prompt.size()) < options["prompt-bytes"])
        prompt += "A gateway says little and hears a lot; ";
    prompt.resize(static_cast<std::size_t>(options["prompt-bytes"]));
    std::string body = R"({"model":")" + options.model + R"(","temperature":0.7,"max_tokens":)" +
                       std::to_string(options["max-tokens"]) + ',';
    if (options["tokens"] > 0) body += R"("stream":true,)";
    body += R"("messages":[{"role":"user","content":")" + prompt + R"("}],"user":"bench:)" +
            std::to_string(options["tokens"]) + ':' + std::to_string(options["first-us"]) + ':' +
            std::to_string(options["delay-us"]) + "\"}";
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
           "Content-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// What happened within the measured window.
struct Tally {
    bool open = false;  ///< The window is.
    std::vector<std::int64_t> answers;
    std::vector<std::int64_t> heads;
    std::vector<std::int64_t> events;  ///< Delay of each.
    std::int64_t reads = 0;            ///< That brought events.
    std::int64_t errors = 0;           ///< At any time.
    std::string first_error;

    void fail(std::string what) {
        if (errors++ == 0) first_error = std::move(what);
    }
};

/// One connection and the answer on it.
class Client {
public:
    Client(int fd, const std::string& request, std::int64_t tokens, Tally& tally)
        : fd_(fd), request_(request), tokens_(tokens), tally_(tally) {}
    ~Client() { close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void ask() {
        asked_at_ = now_ns();
        sent_ = 0;
        input_.clear();
        text_.clear();
        in_body_ = false;
        events_ = 0;
        send_on();
    }

    void send_on() {
        while (sent_ < request_.size()) {
            const ssize_t sent =
                send(fd_, request_.data() + sent_, request_.size() - sent_, MSG_NOSIGNAL);
            if (sent <= 0) return;
            sent_ += static_cast<std::size_t>(sent);
        }
    }

    /// False if the connection is of no more use.
    [[nodiscard]] bool read_on() {
        static std::array<char, 256 * 1024> buffer;
        while (true) {
            const ssize_t got = read(fd_, buffer.data(), buffer.size());
            if (got < 0 && errno == EAGAIN) return true;
            if (got <= 0) {
                tally_.fail("a connection was closed");
                return false;
            }
            input_.append(buffer.data(), static_cast<std::size_t>(got));
            if (!take_input()) return false;
            if (got < static_cast<ssize_t>(buffer.size())) return true;
        }
    }

private:
    bool take_input() {
        if (!in_body_) {
            const std::size_t end = input_.find("\r\n\r\n");
            if (end == std::string::npos) return true;
            if (!take_head(std::string_view(input_).substr(0, end))) return false;
            input_.erase(0, end + 4);
        }
        if (length_ >= 0) return static_cast<std::int64_t>(input_.size()) < length_ || finish();
        return take_chunks();
    }

    bool take_head(std::string_view head) {
        in_body_ = true;
        if (tally_.open) tally_.heads.push_back(now_ns() - asked_at_);
        if (!head.starts_with("HTTP/1.1 200")) {
            tally_.fail("an answer was: " + std::string(head.substr(0, head.find('\r'))));
            return false;
        }
        length_ = -1;
        for (const std::string_view name : {"Content-Length: ", "content-length: "}) {
            const std::size_t at = head.find(name);
            if (at != std::string_view::npos) length_ = number_at(head, at + name.size());
        }
        return true;
    }

    /// Takes the chunks that are whole; an event may lie across their bounds.
    bool take_chunks() {
        std::size_t at = 0;
        bool last = false;
        while (!last) {
            const std::size_t line = input_.find("\r\n", at);
            if (line == std::string::npos) break;
            const auto size = static_cast<std::size_t>(number_at(input_, at, 16));
            if (input_.size() < line + 2 + size + 2) break;
            text_.append(input_, line + 2, size);
            at = line + 2 + size + 2;
            last = size == 0;
        }
        input_.erase(0, at);
        take_events();
        return !last || finish();
    }

    void take_events() {
        constexpr std::string_view kContent = R"("content":")";
        std::size_t at = 0;
        bool some = false;
        for (std::size_t end; (end = text_.find("\n\n", at)) != std::string::npos; at = end + 2) {
            const std::string_view event = std::string_view(text_).substr(at, end - at);
            done_ = event == "data: [DONE]";
            const std::size_t content = event.find(kContent);
            if (content == std::string_view::npos) continue;
            ++events_;
            some = true;
            if (tally_.open)
                tally_.events.push_back(now_ns() - number_at(event, content + kContent.size()));
        }
        text_.erase(0, at);
        if (some && tally_.open) ++tally_.reads;
    }

    bool finish() {
        if (tokens_ > 0 && (events_ != tokens_ || !done_)) tally_.fail("a stream was not whole");
        if (tally_.open) tally_.answers.push_back(now_ns() - asked_at_);
        ask();
        return true;
    }

    const int fd_;
    const std::string& request_;
    const std::int64_t tokens_;
    Tally& tally_;
    std::string input_;
    std::string text_;  ///< Of events that have not ended.
    std::size_t sent_ = 0;
    std::int64_t asked_at_ = 0;
    std::int64_t length_ = -1;  ///< Of the body; -1: chunks.
    std::int64_t events_ = 0;
    bool in_body_ = false;
    bool done_ = false;
};

int connect_to(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/// Some seconds of load on one target.
class Slice {
public:
    Slice(const Options& options, int port) : options_(options), port_(port) {
        for (int i = 0; i < 16; ++i) requests_.push_back(request_of(options, i));
    }
    ~Slice() {
        clients_.clear();
        close(epoll_);
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;

    /// Opens connections evenly over `ramp_ns`.
    void open_all(std::int64_t ramp_ns) {
        const std::int64_t count = options_["connections"];
        const std::int64_t start = now_ns();
        for (std::int64_t i = 0; i < count; ++i) {
            run_until(start + ramp_ns * i / count);
            open();
        }
    }

    void run_until(std::int64_t end) {
        std::array<epoll_event, 256> events{};
        for (std::int64_t left; (left = end - now_ns()) > 0;) {
            const timespec patience{.tv_sec = left / 1'000'000'000,
                                    .tv_nsec = left % 1'000'000'000};
            const int count =
                epoll_pwait2(epoll_, events.data(), events.size(), &patience, nullptr);
            for (int i = 0; i < count; ++i) {
                const epoll_event& event = events[static_cast<std::size_t>(i)];
                Client* const client = clients_[event.data.u32].get();
                if (client == nullptr) continue;
                if ((event.events & EPOLLOUT) != 0) client->send_on();
                if ((event.events & ~EPOLLOUT) != 0 && !client->read_on())
                    clients_[event.data.u32].reset();
            }
        }
    }

    Tally tally;
    [[nodiscard]] std::size_t open_connections() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(clients_, [](const auto& each) { return each != nullptr; }));
    }

private:
    void open() {
        const int fd = connect_to(port_);
        if (fd < 0) return tally.fail("a connection was refused");
        const auto index = static_cast<std::uint32_t>(clients_.size());
        clients_.push_back(std::make_unique<Client>(fd, requests_[index % requests_.size()],
                                                    options_["tokens"], tally));
        epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                          .data = {.u32 = index}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
        clients_.back()->ask();
    }

    const Options& options_;
    const int port_;
    const int epoll_ = epoll_create1(0);
    std::vector<std::string> requests_;
    std::vector<std::unique_ptr<Client>> clients_;
};

double percentile_us(std::vector<std::int64_t>& values, double share) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
    return static_cast<double>(values[at]) / 1000.0;
}

void visit(const Options& options, std::int64_t round, std::string_view target) {
    const std::size_t equals = target.find('=');
    const std::size_t comma = target.find(',');
    const int port = static_cast<int>(number_at(target, equals + 1));
    const int pid =
        comma == std::string_view::npos ? 0 : static_cast<int>(number_at(target, comma + 1));
    const std::int64_t before = resident_kib(pid);
    Slice slice(options, port);
    slice.open_all(options["ramp-ms"] * 1'000'000);
    slice.run_until(now_ns() + options["warm-ms"] * 1'000'000);

    slice.tally.open = true;
    const std::int64_t start = now_ns();
    const std::int64_t cpu = cpu_ns(pid);
    std::int64_t peak = 0;
    constexpr std::int64_t kSamples = 10;
    for (std::int64_t i = 1; i <= kSamples; ++i) {
        slice.run_until(start + options["measure-ms"] * 1'000'000 * i / kSamples);
        peak = std::max(peak, resident_kib(pid));
    }
    const double seconds = static_cast<double>(now_ns() - start) / 1e9;
    const double used = static_cast<double>(cpu_ns(pid) - cpu) / 1000.0;
    slice.tally.open = false;
    Tally& tally = slice.tally;
    std::printf(
        R"({"round":%ld,"target":"%s","seconds":%.3f,"requests":%zu,"events":%zu,"cpu_us":%.1f,)"
        R"("p50":%.1f,"p99":%.1f,"head_p50":%.1f,"event_p50":%.1f,"event_p99":%.1f,"reads":%ld,)"
        R"("before_kib":%ld,"peak_kib":%ld,"open":%zu,"errors":%ld,"first_error":"%s"})"
        "\n",
        round, std::string(target.substr(0, equals)).c_str(), seconds, tally.answers.size(),
        tally.events.size(), used, percentile_us(tally.answers, 0.5),
        percentile_us(tally.answers, 0.99), percentile_us(tally.heads, 0.5),
        percentile_us(tally.events, 0.5), percentile_us(tally.events, 0.99), tally.reads, before,
        peak, slice.open_connections(), tally.errors, tally.first_error.c_str());
    std::fflush(stdout);
}

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        if (name == "--target") {
            options.targets.emplace_back(argv[i + 1]);
        } else if (name == "--model") {
            options.model = argv[i + 1];
        } else if (options.numbers.contains(argv[i] + 2)) {
            options.numbers[argv[i] + 2] = std::atoll(argv[i + 1]);
        } else {
            std::fprintf(stderr, "gateway_load: unknown option %s\n", argv[i]);
            std::exit(2);
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = read_options(argc, argv);
    for (std::int64_t round = 0; round < options["rounds"]; ++round) {
        for (const std::string& target : options.targets) {
            visit(options, round, target);
            // What the target lets go of after its clients have gone is not the next one's.
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
        }
    }
}
