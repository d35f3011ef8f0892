#include "net/client_connection.h"

#include <algorithm>
#include <utility>

namespace sluice::net {

ConnectionPool::ConnectionPool(EventLoop::Impl& loop, HttpClient::Options options)
    : LoopMember(loop), options_(std::move(options)) {}

Result<std::shared_ptr<const TlsTrust>> ConnectionPool::trust() {
    if (trust_ != nullptr) return trust_;
    auto loaded = TlsTrust::load(options_.ca_file);
    if (!loaded) return std::unexpected(loaded.error());
    return trust_ = *std::move(loaded);
}

std::shared_ptr<ClientConnection> ConnectionPool::take(const std::string& origin) {
    const auto found = idle_.find(origin);
    if (found == idle_.end()) return nullptr;
    std::shared_ptr<ClientConnection> taken;
    while (taken == nullptr && !found->second.empty()) {
        auto connection = std::move(found->second.back().connection);
        found->second.pop_back();
        if (connection->is_open()) taken = std::move(connection);
    }
    if (found->second.empty()) idle_.erase(found);
    return taken;
}

void ConnectionPool::put(const std::string& origin, std::shared_ptr<ClientConnection> connection) {
    if (shut_ || options_.idle_connections_per_host == 0) return connection->drop();
    std::vector<Idle>& idle = idle_[origin];
    if (idle.size() >= options_.idle_connections_per_host) {
        idle.front().connection->drop();
        idle.erase(idle.begin());
    }
    const auto time =
        std::min<std::chrono::milliseconds>(options_.idle_time, std::chrono::hours(24));
    idle.push_back({.connection = std::move(connection), .expires = Clock::now() + time});
    sweep_later();
}

void ConnectionPool::forget(const std::string& origin, const ClientConnection& connection) {
    const auto found = idle_.find(origin);
    if (found == idle_.end()) return;
    std::erase_if(found->second,
                  [&](const Idle& entry) { return entry.connection.get() == &connection; });
    if (found->second.empty()) idle_.erase(found);
}

void ConnectionPool::sweep_later() {
    if (sweeper_ || loop() == nullptr) return;
    sweeper_.emplace(loop()->context);
    sweeper_->expires_after(std::clamp<std::chrono::milliseconds>(
        options_.idle_time / 2, std::chrono::milliseconds(1), std::chrono::hours(1)));
    sweeper_->async_wait([weak = weak_from_this()](const SystemError& error) {
        const auto self = weak.lock();
        if (error || self == nullptr || self->loop() == nullptr) return;
        const Turn turn(*self->loop());
        self->sweep();
    });
}

void ConnectionPool::sweep() {
    sweeper_.reset();
    const auto now = Clock::now();
    for (auto& [origin, idle] : idle_) {
        const auto first_young =
            std::ranges::find_if(idle, [&](const Idle& entry) { return entry.expires > now; });
        std::for_each(idle.begin(), first_young,
                      [](const Idle& entry) { entry.connection->drop(); });
        idle.erase(idle.begin(), first_young);
    }
    std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
    if (!idle_.empty()) sweep_later();
}

void ConnectionPool::shut() noexcept {
    shut_ = true;
    sweeper_.reset();
    for (auto& [origin, idle] : idle_) {
        for (const Idle& entry : idle) entry.connection->drop();
    }
    idle_.clear();
}

void ConnectionPool::loop_ends() noexcept { shut(); }

ClientConnection::ClientConnection(EventLoop::Impl& loop, Socket socket, std::string origin)
    : TcpEndpoint(loop, std::move(socket)), origin_(std::move(origin)) {}

void ClientConnection::begin(const std::weak_ptr<ConnectionUser>& user, const std::string& host,
                             const TlsTrust* trust) {
    user_ = user;
    set_no_delay();
    if (trust != nullptr) return secure(trust->open(socket().native_handle(), host));
    watch_input();
    if (const auto call = user.lock()) call->connected();
}

void ClientConnection::on_secured() {
    if (const auto call = user_.lock()) return call->connected();
    drop();
}

void ClientConnection::on_not_secured(const SystemError& error) {
    const auto call = user_.lock();
    drop();
    if (call != nullptr) call->not_secured(error);
}

void ClientConnection::serve(std::weak_ptr<ConnectionUser> user) {
    user_ = std::move(user);
    pool_.reset();
}

void ClientConnection::rest_in(const std::shared_ptr<ConnectionPool>& pool) {
    user_.reset();
    const auto done = std::move(owned_user_);
    clear_deadline();
    pool_ = pool;
    pool->put(origin_, std::static_pointer_cast<ClientConnection>(shared_from_this()));
}

void ClientConnection::send(std::string_view head, std::string&& body,
                            std::vector<SharedText>&& shared_body) {
    output_.add(head);
    output_.move_in(std::move(body));
    for (SharedText& piece : shared_body) output_.share(std::move(piece));
    flush_later();
}

void ClientConnection::drop() noexcept {
    user_.reset();
    const auto done = std::move(owned_user_);
    close();
}

void ClientConnection::leave_pool() {
    drop();
    if (const auto pool = pool_.lock()) pool->forget(origin_, *this);
}

void ClientConnection::on_input(std::string_view data) {
    if (const auto call = user_.lock()) return call->input(data);
    leave_pool();  // Nobody asked for anything: whatever it is, it is not an answer.
}

void ClientConnection::on_input_end(const SystemError& error) {
    if (const auto call = user_.lock()) return call->input_ended(error);
    leave_pool();
}

void ClientConnection::on_output(Output /*state*/) {}

void ClientConnection::on_output_error(const SystemError& /*error*/) {
    // The answer may be there all the same: a refusal of a large body, for example. Reading goes
    // on and ends with it, or with the error.
    output_.clear();
    output_broken_ = true;
}

void ClientConnection::on_deadline() {
    if (const auto call = user_.lock()) call->deadline_passed();
}

void ClientConnection::on_failure() noexcept {
    const auto call = user_.lock();
    leave_pool();
    if (call != nullptr && loop() != nullptr) loop()->guarded([&] { call->failed(); });
}

}  // namespace sluice::net
