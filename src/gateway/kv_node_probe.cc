#include "gateway/kv_node_probe.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace sluice::gateway {
namespace {

constexpr std::size_t kAnswerBytes = 64 * 1024;

}  // namespace

KvNodeProbe::KvNodeProbe(net::EventLoop& loop, net::HttpClient& client, const KvNode& node,
                         std::function<void(std::vector<std::string>)> on_done)
    : node_(node), on_done_(std::move(on_done)), open_(node.http.empty() ? 1 : 2) {
    connect(loop);
    if (!node.http.empty()) ask_http(loop, client);
}

// A connection alone: what it speaks, and whether it lets them in, is between it and the workers.
void KvNodeProbe::connect(net::EventLoop& loop) {
    const auto address = parse_host_port(node_.url.substr(node_.url.find("://") + 3));
    const HostPort target = address.value_or(HostPort{});
    stream_ = net::connect_tcp(
        loop, {.host = target.host, .port = target.port, .connect_time = kTime}, *this);
}

void KvNodeProbe::ask_http(net::EventLoop& loop, net::HttpClient& client) {
    call_ = std::make_unique<discovery::CollectedCall>(
        loop, client, net::ClientRequest{.url = node_.http + "/health"}, kAnswerBytes, kTime,
        [this](const Result<discovery::CollectedAnswer>& answer) {
            if (!answer) {
                unreachable_.push_back(fmt::format("{}: {}", node_.http, answer.error().message()));
            } else if (answer->status != 200) {
                unreachable_.push_back(
                    fmt::format("{}: the status is {}", node_.http, answer->status));
            }
            end_one();
        });
}

void KvNodeProbe::on_open() { end_one(); }

void KvNodeProbe::on_broken(const Error& why) {
    unreachable_.push_back(fmt::format("{}: {}", node_.url, why.message()));
    end_one();
}

void KvNodeProbe::end_one() {
    if (--open_ > 0) return;
    const auto done = std::exchange(on_done_, nullptr);
    done(std::move(unreachable_));
}

}  // namespace sluice::gateway
