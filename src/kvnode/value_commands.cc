// Commands that read and write values.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "kv/block_name.h"
#include "kv/block_value.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

using Stored = NodeStore::Stored;
using std::chrono::milliseconds;

/// A value that the SSD is asked for: counted for its client until it is there, and for all of them
/// until the kernel has it.
struct Fetch {
    ReadBudget::SharePtr of_client;
    ReadBudget::SharePtr of_all;

    [[nodiscard]] kv::SharedBytes arrived(const kv::SharedBytes& value) {
        of_client.reset();
        return with_share(value, std::move(of_all));
    }
};

/// Nothing if too much of what the SSD had waits for its readers.
std::optional<Fetch> plan_fetch(RespCall& call, std::string_view name, kv::WallTime now) {
    const std::uint64_t bytes = call.service.store.value_bytes(name, now).value_or(0);
    Fetch fetch{.of_client = nullptr, .of_all = call.service.ssd_answers.take(bytes)};
    if (!fetch.of_all) return std::nullopt;
    fetch.of_client = call.client.fetching.take(bytes);
    return fetch;
}

void too_much_from_ssd(kv::RespWriter& out) {
    out.error("OOM what came from the SSD waits for clients to read it; ask for less, or later");
}

/// Reads `name`; `use` gets the value, or an empty one, at once or later, and where to answer.
template <class Use>
void with_value(RespCall& call, std::string_view name, RespCall::Others others, Use use) {
    NodeService& service = call.service;
    const kv::WallTime now = wall_now();
    kv::SharedBytes value = service.store.in_memory(name, now);
    if (value || !service.store.only_on_ssd(name, now)) {
        ++(value ? service.hits : service.misses);
        return use(std::move(value), call.out);
    }
    auto fetch = plan_fetch(call, name, now);
    if (!fetch) return too_much_from_ssd(call.out);
    const RespTicket ticket = call.later(others);
    service.store.fetch(name, now,
                        [&service, ticket, use = std::move(use),
                         fetch = *std::move(fetch)](const kv::SharedBytes& got) mutable {
                            ++(got ? service.hits : service.misses);
                            use(fetch.arrived(got), ticket.out());
                            ticket.done();
                        });
}

/// The client may be gone when a value comes late: faults are then planted in nobody's answer.
struct Reader {
    NodeService* service;
    std::uint64_t client;
    std::string name;

    void write(kv::SharedBytes value, kv::RespWriter& out) const {
        if (!value) return out.null();
        const auto found = service->clients.find(client);
        if (found == service->clients.end()) return out.null();
        write_value(*service, *found->second, name, std::move(value), out);
    }
};

Reader reader_of(RespCall& call, std::string_view name) {
    return {.service = &call.service, .client = call.client.id, .name = std::string(name)};
}

void get(RespCall& call) {
    with_value(
        call, call.word(1), RespCall::Others::kGoOn,
        [reader = reader_of(call, call.word(1))](kv::SharedBytes value, kv::RespWriter& out) {
            reader.write(std::move(value), out);
        });
}

/// The part from `first` to `last`; negative ones count from the end.
kv::SharedBytes part_of(const kv::SharedBytes& value, std::int64_t first, std::int64_t last) {
    const auto size = static_cast<std::int64_t>(value.bytes.size());
    if (first < 0) first = std::max<std::int64_t>(size + first, 0);
    if (last < 0) last = std::max<std::int64_t>(size + last, 0);
    last = std::min(last, size - 1);
    if (first > last || size == 0) return kv::SharedBytes::own({});
    return {.bytes = value.bytes.substr(static_cast<std::size_t>(first),
                                        static_cast<std::size_t>(last - first + 1)),
            .owner = value.owner};
}

void get_range(RespCall& call) {
    const auto first = parse_integer(call.word(2));
    const auto last = parse_integer(call.word(3));
    if (!first || !last) return not_an_integer(call.out);
    with_value(call, call.word(1), RespCall::Others::kGoOn,
               [first = *first, last = *last, reader = reader_of(call, call.word(1))](
                   const kv::SharedBytes& value, kv::RespWriter& out) {
                   if (!value) return out.text(std::string_view());
                   reader.write(part_of(value, first, last), out);
               });
}

void string_length(RespCall& call) {
    const auto bytes = call.service.store.value_bytes(call.word(1), wall_now());
    call.out.integer(static_cast<std::int64_t>(bytes.value_or(0)));
}

/// Values of one MGET, which come in any order.
struct Gathering {
    RespTicket ticket;
    NodeService* service;
    std::vector<Reader> readers;
    std::vector<kv::SharedBytes> values;
    std::size_t missing = 0;

    void take(std::size_t index, kv::SharedBytes value) {
        ++(value ? service->hits : service->misses);
        values[index] = std::move(value);
        if (--missing > 0) return;
        write();
        ticket.done();
    }

    // Small values are copied, so one name said often enough would be any number of bytes.
    void write() {
        std::size_t bytes = 0;
        for (const kv::SharedBytes& value : values) bytes += value.bytes.size();
        if (bytes > limits::kKvNodeOutputBytes)
            return ticket.out().error("OOM these values together are more than an answer may have");
        ticket.out().array(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            readers[i].write(std::move(values[i]), ticket.out());
    }
};

void get_many(RespCall& call) {
    NodeService& service = call.service;
    const kv::WallTime now = wall_now();
    const std::size_t count = call.words.size() - 1;
    std::vector<std::optional<Fetch>> fetches(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!service.store.only_on_ssd(call.word(i + 1), now)) continue;
        fetches[i] = plan_fetch(call, call.word(i + 1), now);
        if (!fetches[i]) return too_much_from_ssd(call.out);
    }
    const auto gathering =
        std::make_shared<Gathering>(Gathering{.ticket = call.later(RespCall::Others::kGoOn),
                                              .service = &service,
                                              .readers = {},
                                              .values = std::vector<kv::SharedBytes>(count),
                                              .missing = count});
    for (std::size_t i = 0; i < count; ++i)
        gathering->readers.push_back(reader_of(call, call.word(i + 1)));
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view name = gathering->readers[i].name;
        if (!fetches[i]) {
            gathering->take(i, service.store.in_memory(name, now));
            continue;
        }
        service.store.fetch(
            name, now,
            [gathering, i, fetch = *std::move(fetches[i])](const kv::SharedBytes& got) mutable {
                gathering->take(i, fetch.arrived(got));
            });
    }
}

// ---- SET ------------------------------------------------------------------------------------------

struct SetPlan {
    std::string name;
    kv::SharedBytes value;
    std::optional<kv::WallTime> expires;
    bool only_if_absent = false;
    bool only_if_there = false;
    bool keep_life = false;
    bool get = false;
};

/// EX, PX, EXAT and PXAT with their number; nothing after an error, which is written.
std::optional<kv::WallTime> end_of_life(RespCall& call, std::string_view unit,
                                        std::string_view number) {
    const auto count = parse_integer(number);
    if (!count) {
        not_an_integer(call.out);
        return std::nullopt;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 43;  // Milliseconds: 278 years.
    const bool seconds = same_word(unit.substr(0, 2), "ex");
    const bool at = unit.size() == 4;
    if (*count <= 0 || *count > (seconds ? kMost / 1'000 : kMost)) {
        call.out.error("ERR invalid expire time in 'set' command");
        return std::nullopt;
    }
    const milliseconds time(seconds ? *count * 1'000 : *count);
    return at ? kv::WallTime(time) : wall_now() + time;
}

/// Nothing after an error, which is written.
std::optional<SetPlan> plan_set(RespCall& call) {
    SetPlan plan{.name = std::string(call.word(1)), .value = call.words[2].take_shared()};
    for (std::size_t i = 3; i < call.words.size(); ++i) {
        const std::string_view word = call.word(i);
        const bool life = same_word(word, "ex") || same_word(word, "px") ||
                          same_word(word, "exat") || same_word(word, "pxat");
        if (life && i + 1 < call.words.size() && !plan.expires) {
            plan.expires = end_of_life(call, word, call.word(++i));
            if (!plan.expires) return std::nullopt;
        } else if (same_word(word, "nx")) {
            plan.only_if_absent = true;
        } else if (same_word(word, "xx")) {
            plan.only_if_there = true;
        } else if (same_word(word, "get")) {
            plan.get = true;
        } else if (same_word(word, "keepttl")) {
            plan.keep_life = true;
        } else {
            syntax_error(call.out);
            return std::nullopt;
        }
    }
    if ((plan.only_if_absent && plan.only_if_there) || (plan.keep_life && plan.expires)) {
        syntax_error(call.out);
        return std::nullopt;
    }
    return plan;
}

/// Why a value was refused.
std::string refusal(std::string_view name, std::string_view value) {
    const auto block = kv::parse_block_name(name);
    if (!block) return "OOM no room for a value of this size";
    const auto header = kv::read_block_header(value);
    if (!header)
        return fmt::format("ERR the value is no whole block: {}", header.error().message());
    if (header->key != block->key) return "ERR the value is another block than its name says";
    if (block->retention == kv::Retention::kNone)
        return "ERR blocks of class none are kept nowhere";
    return "OOM no room for a block of this size";
}

void write_stored(Stored stored, bool only_if_absent, std::string_view name, std::string_view value,
                  kv::RespWriter& out) {
    switch (stored) {
        case Stored::kStored: return out.status("OK");
        case Stored::kWasThere: return only_if_absent ? out.null() : out.status("OK");
        case Stored::kDiffers:
            if (only_if_absent) return out.null();
            return out.error("NUMERICS another payload is kept under this block's name");
        case Stored::kRefused: return out.error(refusal(name, value));
    }
}

void apply(NodeService& service, const SetPlan& plan, const kv::SharedBytes& old,
           kv::RespWriter& out) {
    const kv::WallTime now = wall_now();
    if (plan.only_if_there && !service.store.contains(plan.name, now)) return out.null();
    std::optional<kv::WallTime> expires = plan.expires;
    if (plan.keep_life) {
        const auto left = service.store.time_left(plan.name, now);
        if (left && *left != milliseconds::max()) expires = now + *left;
    }
    service.bytes_written += plan.value.bytes.size();
    const Stored stored = service.store.put(
        plan.name, plan.value, {.expires = expires, .only_if_absent = plan.only_if_absent}, now);
    const bool failed =
        stored == Stored::kRefused || (stored == Stored::kDiffers && !plan.only_if_absent);
    if (!plan.get || failed)
        return write_stored(stored, plan.only_if_absent, plan.name, plan.value.bytes, out);
    if (!old) return out.null();
    out.text(old);
}

void set(RespCall& call) {
    if (call.word(1).size() > limits::kKvNameBytes) return call.out.error("ERR key is too long");
    const auto plan = plan_set(call);
    if (!plan) return;
    NodeService& service = call.service;
    const kv::WallTime now = wall_now();
    const bool compares = !plan->only_if_absent && kv::parse_block_name(plan->name);
    if (!service.store.only_on_ssd(plan->name, now) || !(compares || plan->get)) {
        const kv::SharedBytes old =
            plan->get ? service.store.in_memory(plan->name, now) : kv::SharedBytes{};
        return apply(service, *plan, old, call.out);
    }
    const RespTicket ticket = call.later(RespCall::Others::kWait);
    service.store.fetch(plan->name, now,
                        [&service, plan = *plan, ticket](const kv::SharedBytes& old) {
                            apply(service, plan, old, ticket.out());
                            ticket.done();
                        });
}

/// The pairs of an MSET, once those that are compared have come to memory.
struct SetMany {
    NodeService* service;
    std::vector<std::pair<std::string, kv::SharedBytes>> pairs;
    std::size_t missing = 0;

    // One name after the other: an error leaves those before it stored, and says so by its name.
    void apply(kv::RespWriter& out) {
        const kv::WallTime now = wall_now();
        for (auto& [name, value] : pairs) {
            service->bytes_written += value.bytes.size();
            const Stored stored = service->store.put(name, value, {}, now);
            if (stored == Stored::kRefused || stored == Stored::kDiffers)
                return write_stored(stored, false, name, value.bytes, out);
            value = {};
        }
        out.status("OK");
    }
};

void set_many(RespCall& call) {
    if (call.words.size() % 2 == 0)
        return call.out.error("ERR wrong number of arguments for 'mset' command");
    for (std::size_t i = 1; i < call.words.size(); i += 2)
        if (call.word(i).size() > limits::kKvNameBytes)
            return call.out.error("ERR key is too long");
    NodeStore& store = call.service.store;
    const kv::WallTime now = wall_now();
    const auto plan = std::make_shared<SetMany>(SetMany{.service = &call.service, .pairs = {}});
    std::vector<std::string_view> compared;
    for (std::size_t i = 1; i < call.words.size(); i += 2) {
        plan->pairs.emplace_back(call.word(i), call.words[i + 1].take_shared());
        if (kv::parse_block_name(call.word(i)) && store.only_on_ssd(call.word(i), now))
            compared.push_back(call.word(i));
    }
    if (compared.empty()) return plan->apply(call.out);
    plan->missing = compared.size();
    const RespTicket ticket = call.later(RespCall::Others::kWait);
    for (const std::string_view name : compared) {
        store.fetch(name, now, [plan, ticket](const kv::SharedBytes& /*old*/) {
            if (--plan->missing > 0) return;
            plan->apply(ticket.out());
            ticket.done();
        });
    }
}

constexpr auto kCommands = std::to_array<RespCommand>({
    {"get", 2, false, 1, 1, 1, get},
    {"getrange", 4, false, 1, 1, 1, get_range},
    {"mget", -2, false, 1, -1, 1, get_many},
    {"mset", -3, true, 1, -1, 2, set_many},
    {"set", -3, true, 1, 1, 1, set},
    {"strlen", 2, false, 1, 1, 1, string_length},
});

}  // namespace

std::span<const RespCommand> value_commands() { return kCommands; }

}  // namespace sluice::kvnode
