// Commands that make a new value of the one that is there. Never of a block, which is what its name says.

#include <fmt/format.h>

#include <array>
#include <functional>
#include <utility>

#include "base/limits.h"
#include "kv/block_name.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

struct Changed {
    std::string value;
    std::int64_t answer = 0;
};
/// An error is for the client, with its code word.
using Change = std::function<std::expected<Changed, std::string>(const kv::SharedBytes& old)>;

void apply(NodeService& service, const std::string& name, const Change& change,
           const kv::SharedBytes& old, kv::RespWriter& out) {
    auto changed = change(old);
    if (!changed) return out.error(changed.error());
    const kv::WallTime now = wall_now();
    kv::DramTier::PutOptions options;
    const auto left = service.store.time_left(name, now);
    if (left && *left != std::chrono::milliseconds::max()) options.expires = now + *left;
    service.bytes_written += changed->value.size();
    const auto stored =
        service.store.put(name, kv::SharedBytes::own(std::move(changed->value)), options, now);
    if (stored != NodeStore::Stored::kStored)
        return out.error("OOM no room for a value of this size");
    out.integer(changed->answer);
}

void change_value(RespCall& call, const Change& change) {
    const std::string name(call.word(1));
    if (name.size() > limits::kKvNameBytes) return call.out.error("ERR key is too long");
    if (kv::parse_block_name(name)) return call.out.error("ERR a block can't be changed");
    NodeService& service = call.service;
    const kv::WallTime now = wall_now();
    if (!service.store.only_on_ssd(name, now))
        return apply(service, name, change, service.store.in_memory(name, now), call.out);
    const RespTicket ticket = call.later(RespCall::Others::kWait);
    service.store.fetch(name, now, [&service, name, change, ticket](const kv::SharedBytes& old) {
        apply(service, name, change, old, ticket.out());
        ticket.done();
    });
}

void add(RespCall& call, std::int64_t by) {
    change_value(call, [by](const kv::SharedBytes& old) -> std::expected<Changed, std::string> {
        const auto before = old ? parse_integer(old.bytes) : 0;
        if (!before) return std::unexpected("ERR value is not an integer or out of range");
        std::int64_t sum = 0;
        if (__builtin_add_overflow(*before, by, &sum))
            return std::unexpected("ERR increment or decrement would overflow");
        return Changed{.value = std::to_string(sum), .answer = sum};
    });
}

void increment(RespCall& call) { add(call, 1); }
void decrement(RespCall& call) { add(call, -1); }

void increment_by(RespCall& call) {
    const auto by = parse_integer(call.word(2));
    if (!by) return not_an_integer(call.out);
    add(call, *by);
}

void decrement_by(RespCall& call) {
    const auto by = parse_integer(call.word(2));
    if (!by) return not_an_integer(call.out);
    if (*by == std::numeric_limits<std::int64_t>::min())
        return call.out.error("ERR decrement would overflow");
    add(call, -*by);
}

void append(RespCall& call) {
    const kv::SharedBytes more = call.words[2].take_shared();
    change_value(call, [more](const kv::SharedBytes& old) -> std::expected<Changed, std::string> {
        if (old.bytes.size() + more.bytes.size() > limits::kKvValueBytes) {
            return std::unexpected("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        }
        std::string whole(old.bytes);
        whole += more.bytes;
        const auto size = static_cast<std::int64_t>(whole.size());
        return Changed{.value = std::move(whole), .answer = size};
    });
}

constexpr auto kCommands = std::to_array<RespCommand>({
    {"append", 3, true, 1, 1, 1, append},
    {"decr", 2, true, 1, 1, 1, decrement},
    {"decrby", 3, true, 1, 1, 1, decrement_by},
    {"incr", 2, true, 1, 1, 1, increment},
    {"incrby", 3, true, 1, 1, 1, increment_by},
});

}  // namespace

std::span<const RespCommand> change_commands() { return kCommands; }

}  // namespace sluice::kvnode
