#include "discovery/http_announcer.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::discovery {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kAnswerTime{5};
constexpr std::chrono::seconds kRetryPause{1};

std::string text_at(std::string_view body, std::string_view path) {
    boost::system::error_code error;
    const json::value value = json::parse(body, error);
    if (error) return {};
    const json::value* const found = value.find_pointer(path, error);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

}  // namespace

HttpAnnouncer::HttpAnnouncer(net::EventLoop& loop, net::HttpClient& client, std::string admin,
                             std::string key, Announcement announcement)
    : loop_(loop),
      client_(client),
      admin_(std::move(admin)),
      key_(std::move(key)),
      announcement_(std::move(announcement)) {}

net::ClientRequest HttpAnnouncer::request(std::string method, const std::string& path) const {
    net::ClientRequest request{
        .method = std::move(method), .url = admin_ + path, .repeatable = true};
    if (!key_.empty()) request.headers.set("Authorization", "Bearer " + key_);
    return request;
}

void HttpAnnouncer::announce() {
    const WorkerEntry& worker = announcement_.worker;
    net::ClientRequest post = request("POST", "/workers");
    post.headers.set("Content-Type", "application/json");
    post.body = json::serialize(json::object{{"url", worker.url},
                                             {"pool", worker.pool},
                                             {"phase", to_string(worker.phase)},
                                             {"lease_s", announcement_.lease.count()}});
    call_ = std::make_unique<CollectedCall>(
        loop_, client_, std::move(post), limits::kPortTextBytes, kAnswerTime,
        [this](Result<CollectedAnswer> answer) { on_answer(std::move(answer)); });
}

void HttpAnnouncer::on_answer(Result<CollectedAnswer> answer) {
    std::string trouble;
    if (!answer) trouble = answer.error().message();
    if (answer && answer->status / 100 != 2) {
        trouble = text_at(answer->body, "/error/message");
        if (trouble.empty()) trouble = fmt::format("status {}", answer->status);
    }
    if (!trouble.empty() && trouble != trouble_)
        log::warn("the gateway at {} does not take this worker: {}", admin_, trouble);
    const bool news = name_.empty() || !trouble_.empty();
    trouble_ = trouble;
    std::chrono::milliseconds pause = announcement_.lease;
    pause /= 3;
    if (trouble.empty()) {
        name_ = text_at(answer->body, "/name");
        if (news) log::info("the gateway at {} knows this worker as {}", admin_, name_);
    } else {
        pause = std::min<std::chrono::milliseconds>(pause, kRetryPause);
    }
    next_ = loop_.call_after(pause, [this] { announce(); });
}

void HttpAnnouncer::withdraw(std::function<void()> on_done) {
    next_.cancel();
    call_.reset();
    if (name_.empty()) return loop_.post(std::move(on_done));
    call_ = std::make_unique<CollectedCall>(
        loop_, client_, request("DELETE", "/workers/" + name_), limits::kPortTextBytes, kAnswerTime,
        [done = std::move(on_done)](const Result<CollectedAnswer>&) { done(); });
}

}  // namespace sluice::discovery
