#include "kvnode/redis_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice::kvnode {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHopsMax = 5;
constexpr std::size_t kNodesMax = 1'024;

template <class T>
bool read_number(std::string_view text, T& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size();
}

}  // namespace

std::uint16_t cluster_slot(std::string_view key) {
    if (const std::size_t open = key.find('{'); open != std::string_view::npos) {
        const std::size_t close = key.find('}', open + 1);
        if (close != std::string_view::npos && close > open + 1)
            key = key.substr(open + 1, close - open - 1);
    }
    std::uint16_t crc = 0;
    for (const char c : key) {
        crc = static_cast<std::uint16_t>(crc ^ (static_cast<unsigned char>(c) << 8));
        for (int bit = 0; bit < 8; ++bit)
            crc = static_cast<std::uint16_t>((crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0));
    }
    return crc % kClusterSlots;
}

std::optional<Redirection> parse_redirection(std::string_view error) {
    Redirection to;
    if (error.starts_with("ASK ")) {
        to.ask = true;
        error.remove_prefix(4);
    } else if (error.starts_with("MOVED ")) {
        error.remove_prefix(6);
    } else {
        return std::nullopt;
    }
    const std::size_t space = error.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const std::string_view place = error.substr(space + 1);
    const std::size_t colon = place.rfind(':');  // An IPv6 address has more of them.
    if (colon == std::string_view::npos || colon > 255) return std::nullopt;
    to.host = place.substr(0, colon);
    if (!read_number(error.substr(0, space), to.slot) || to.slot >= kClusterSlots ||
        !read_number(place.substr(colon + 1), to.port) || to.port == 0) {
        return std::nullopt;
    }
    return to;
}

std::shared_ptr<RedisCluster> RedisCluster::make(net::EventLoop& loop, MemberOptions options) {
    auto cluster = std::make_shared<RedisCluster>(loop, std::move(options));
    cluster->learn_slots();
    cluster->tick();
    return cluster;
}

RedisCluster::RedisCluster(net::EventLoop& loop, MemberOptions options)
    : loop_(loop), options_(std::move(options)), slots_(kClusterSlots) {
    stats.where = options_.address.name();
    first_ = node(options_.address.host, options_.address.port);
}

RedisCluster::Node RedisCluster::node(const std::string& host, std::uint16_t port) {
    const auto found = nodes_.find({host, port});
    if (found != nodes_.end()) return found->second;
    if (nodes_.size() >= kNodesMax) return first_;
    MemberOptions options = options_;
    options.address.kind = StoreUrl::Kind::kNode;
    options.address.host = host;
    options.address.port = port;
    auto made = std::make_shared<RespNode>(loop_, options);
    nodes_.emplace(std::pair(host, port), made);
    return made;
}

RedisCluster::Node RedisCluster::node_of(const std::string& name) const {
    const Node& known = slots_[cluster_slot(name)];
    return known != nullptr ? known : first_;
}

void RedisCluster::call(Lane lane, RespRequest request, Deadline deadline,
                        RespClient::OnReply on_reply, WantedBy wanted_by) {
    const Node to = node_of(request.words.at(1));
    const auto trip = std::make_shared<Trip>(lane, std::move(request), deadline,
                                             std::move(on_reply), std::move(wanted_by));
    send(trip, to, false);
}

void RedisCluster::send(const std::shared_ptr<Trip>& trip, const Node& to, bool asking) {
    // ASKING holds for the request that follows it on the same connection.
    if (asking) to->call(trip->lane, {.words = {"ASKING"}}, trip->deadline, [](const auto&) {});
    // The request is kept for another hop; its value is shared. The node lives until it has
    // answered, even if the cluster has forgotten it.
    to->call(
        trip->lane, trip->request, trip->deadline,
        [weak = weak_from_this(), trip, to](Result<kv::RespReply> reply) {
            if (const auto self = weak.lock()) self->replied(trip, to, std::move(reply));
        },
        trip->wanted_by);
}

void RedisCluster::replied(const std::shared_ptr<Trip>& trip, const Node& from,
                           Result<kv::RespReply> reply) {
    if (closed_) return;
    if (!reply) {
        doubtful_ = true;
        return trip->on_reply(std::move(reply));
    }
    const auto to = reply->is_error() ? parse_redirection(reply->text.view()) : std::nullopt;
    if (!to || ++trip->hops > kHopsMax) return trip->on_reply(std::move(reply));
    ++redirections_;
    const Node next = node(to->host.empty() ? from->address().host : to->host, to->port);
    if (!to->ask) {
        slots_[to->slot] = next;
        doubtful_ = true;  // Other slots may have moved, too.
    }
    send(trip, next, to->ask);
}

bool RedisCluster::up(Lane lane, const std::string& name) const { return node_of(name)->up(lane); }

void RedisCluster::break_off(Lane lane, const std::string& name, const std::string& why) {
    node_of(name)->break_off(lane, name, why);
}

void RedisCluster::tick() {
    tick_timer_ = loop_.call_after(options_.probe_pause, [this] {
        const bool all_up = std::ranges::all_of(
            nodes_, [](const auto& entry) { return entry.second->up(Lane::kLookUp); });
        if (doubtful_ || !all_up) learn_slots();
        tick();
    });
}

void RedisCluster::learn_slots() {
    const auto asked = std::ranges::find_if(
        nodes_, [](const auto& entry) { return entry.second->up(Lane::kLookUp); });
    if (learning_ || asked == nodes_.end()) return;
    learning_ = true;
    asked->second->call(
        Lane::kLookUp, {.words = {"CLUSTER", "SLOTS"}}, Clock::now() + options_.connect_time,
        [weak = weak_from_this(), from = asked->second](const Result<kv::RespReply>& reply) {
            const auto self = weak.lock();
            if (self == nullptr || self->closed_) return;
            self->learning_ = false;
            if (reply && reply->type == kv::RespType::kArray) self->learnt(*reply, from);
        });
}

void RedisCluster::learnt(const kv::RespReply& reply, const Node& from) {
    std::vector<Node> slots(kClusterSlots);
    for (const kv::RespReply& range : reply.elements) {
        // First slot, last slot, the master, its replicas; a server is its host, port and id.
        if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) continue;
        const std::int64_t first = range.elements[0].integer;
        const std::int64_t last = range.elements[1].integer;
        const kv::RespReply& master = range.elements[2];
        const std::int64_t port = master.elements[1].integer;
        std::string host(master.elements[0].text.view().substr(0, 255));
        if (host.empty() || host == "?") host = from->address().host;
        if (first < 0 || last >= static_cast<std::int64_t>(kClusterSlots) || first > last ||
            port <= 0 || port > 65'535) {
            continue;
        }
        const Node owner = node(host, static_cast<std::uint16_t>(port));
        std::fill(slots.begin() + first, slots.begin() + last + 1, owner);
    }
    slots_ = std::move(slots);
    doubtful_ = false;
    std::erase_if(nodes_, [this](const auto& entry) {
        return entry.second != first_ && std::ranges::find(slots_, entry.second) == slots_.end();
    });
}

void RedisCluster::close_all() {
    closed_ = true;
    tick_timer_.cancel();
    for (const auto& [place, node] : nodes_) node->close();
}

}  // namespace sluice::kvnode
