#include "discovery/etcd_announcer.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "discovery/etcd_codec.h"

namespace sluice::discovery {
namespace {

constexpr std::chrono::seconds kAnswerTime{5};
constexpr std::chrono::seconds kRetryPause{1};

/// One worker, one key, whoever writes it: a restart replaces what the process before has left.
std::string key_of(const EtcdOptions& options, const WorkerEntry& worker) {
    return options.prefix + worker.pool + "/" + worker.url.substr(worker.url.find("://") + 3);
}

}  // namespace

EtcdAnnouncer::EtcdAnnouncer(net::EventLoop& loop, net::HttpClient& client, EtcdOptions options,
                             Announcement announcement)
    : loop_(loop),
      client_(client),
      options_(std::move(options)),
      announcement_(std::move(announcement)) {}

void EtcdAnnouncer::call(const std::string& path, std::string body, OnBody on_body) {
    net::ClientRequest request{.method = "POST",
                               .url = options_.endpoints[endpoint_] + path,
                               .headers = {{"Content-Type", "application/json"}},
                               .body = std::move(body),
                               .repeatable = true};
    call_ = std::make_unique<CollectedCall>(
        loop_, client_, std::move(request), limits::kPortTextBytes, kAnswerTime,
        [this, on_body = std::move(on_body)](const Result<CollectedAnswer>& answer) {
            if (!answer) return begin_again(answer.error().message());
            if (answer->status != 200) return begin_again(fmt::format("status {}", answer->status));
            on_body(answer->body);
        });
}

void EtcdAnnouncer::grant() {
    lease_.clear();
    call("/v3/lease/grant", grant_request(announcement_.lease.count()),
         [this](const std::string& body) {
             auto lease = parse_grant(body);
             if (!lease) return begin_again(lease.error().message());
             lease_ = std::move(*lease);
             put();
         });
}

void EtcdAnnouncer::put() {
    const std::string key = key_of(options_, announcement_.worker);
    call("/v3/kv/put", put_request(key, to_json(announcement_.worker), lease_),
         [this, key](const std::string&) {
             log::info("this worker stands in etcd at {}", key);
             told_ = false;
             std::chrono::milliseconds pause = announcement_.lease;
             next_ = loop_.call_after(pause / 3, [this] { keep_alive(); });
         });
}

void EtcdAnnouncer::keep_alive() {
    call("/v3/lease/keepalive", lease_request(lease_), [this](const std::string& body) {
        const auto left = parse_keep_alive(body);
        if (!left) return begin_again(left.error().message());
        if (*left == 0) return begin_again("the lease has ended");
        std::chrono::milliseconds pause = announcement_.lease;
        next_ = loop_.call_after(pause / 3, [this] { keep_alive(); });
    });
}

void EtcdAnnouncer::begin_again(const std::string& why) {
    if (!std::exchange(told_, true))
        log::warn("this worker can't be kept in etcd at {}: {}", options_.endpoints[endpoint_],
                  why);
    endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
    next_ = loop_.call_after(kRetryPause, [this] { grant(); });
}

void EtcdAnnouncer::withdraw(std::function<void()> on_done) {
    next_.cancel();
    call_.reset();
    if (lease_.empty()) return loop_.post(std::move(on_done));
    net::ClientRequest request{.method = "POST",
                               .url = options_.endpoints[endpoint_] + "/v3/lease/revoke",
                               .headers = {{"Content-Type", "application/json"}},
                               .body = lease_request(lease_),
                               .repeatable = true};
    call_ = std::make_unique<CollectedCall>(
        loop_, client_, std::move(request), limits::kPortTextBytes, kAnswerTime,
        [done = std::move(on_done)](const Result<CollectedAnswer>&) { done(); });
}

}  // namespace sluice::discovery
