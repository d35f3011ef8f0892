// Commands about the node itself.

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/limits.h"
#include "base/version.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

using namespace std::string_view_literals;

struct Section {
    std::string_view name;  ///< In lower case.
    std::string text;
};

std::string server_text(const NodeService& service) {
    const auto up = std::chrono::steady_clock::now() - service.started;
    return fmt::format(
        "# Server\r\nserver_name:sluice\r\nsluice_version:{}\r\nredis_version:7.0.0\r\n"
        "redis_mode:standalone\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\n",
        version().version, ::getpid(),
        std::chrono::duration_cast<std::chrono::seconds>(up).count());
}

/// Look-ups count as in Redis: as reads.
std::string stats_text(const NodeService& service, const kv::DramStats& dram) {
    return fmt::format(
        "# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
        "keyspace_hits:{}\r\nkeyspace_misses:{}\r\nevicted_keys:{}\r\nexpired_keys:{}\r\n"
        "numerics_violations:{}\r\n",
        service.clients_total, service.commands, service.hits + service.found,
        service.misses + service.not_found,
        dram.removed[static_cast<std::size_t>(kv::Removal::kEvicted)],
        dram.removed[static_cast<std::size_t>(kv::Removal::kExpired)], dram.differs);
}

std::string ssd_text(const kv::SsdStats& ssd) {
    return fmt::format(
        "# Ssd\r\nssd_bytes:{}\r\nssd_entries:{}\r\nssd_written_bytes:{}\r\nssd_hits:{}\r\n"
        "ssd_corrupt:{}\r\nssd_dropped:{}\r\n",
        ssd.bytes, ssd.entries, ssd.written_bytes, ssd.hits, ssd.corrupt, ssd.dropped);
}

/// Clients look for the version, the mode, the role, and whether it is loading: a node answers when its
/// index is whole, so it never is.
std::vector<Section> info_sections(const NodeService& service) {
    const kv::DramStats dram = service.store.dram().stats();
    std::vector<Section> sections;
    sections.push_back({"server", server_text(service)});
    sections.push_back(
        {"clients", fmt::format("# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n",
                                service.clients.size(), limits::kKvNodeClients)});
    sections.push_back(
        {"memory", fmt::format("# Memory\r\nused_memory:{}\r\nmaxmemory:{}\r\npinned_memory:{}\r\n",
                               dram.bytes, dram.limit, dram.pinned_bytes)});
    sections.push_back({"persistence", "# Persistence\r\nloading:0\r\nasync_loading:0\r\n"});
    sections.push_back({"stats", stats_text(service, dram)});
    if (const kv::SsdTier* const ssd = service.store.ssd())
        sections.push_back({"ssd", ssd_text(ssd->stats())});
    sections.push_back({"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"});
    sections.push_back({"cluster", "# Cluster\r\ncluster_enabled:0\r\n"});
    sections.push_back(
        {"keyspace", fmt::format("# Keyspace\r\ndb0:keys={},expires={},avg_ttl=0\r\n",
                                 service.store.entries(), dram.mortal)});
    return sections;
}

/// INFO [section...]: all of them if none is named.
void info(RespCall& call) {
    const auto wanted = [&](std::string_view section) {
        if (call.words.size() == 1) return true;
        for (std::size_t i = 1; i < call.words.size(); ++i)
            for (const std::string_view name : {section, "all"sv, "everything"sv, "default"sv})
                if (same_word(call.word(i), name)) return true;
        return false;
    };
    std::string text;
    for (const Section& section : info_sections(call.service)) {
        if (!wanted(section.name)) continue;
        if (!text.empty()) text += "\r\n";
        text += section.text;
    }
    call.out.text(text);
}

/// FLUSHALL, FLUSHDB [ASYNC|SYNC]: everything goes, pinned or not, before the answer.
void flush(RespCall& call) {
    const bool whole = call.words.size() == 1 ||
                       (call.words.size() == 2 &&
                        (same_word(call.word(1), "async") || same_word(call.word(1), "sync")));
    if (!whole) return syntax_error(call.out);
    const RespTicket ticket = call.later(RespCall::Others::kWait);
    call.service.store.erase_if(std::nullopt, std::nullopt, [ticket](std::uint64_t /*erased*/) {
        ticket.out().status("OK");
        ticket.done();
    });
}

/// Names in the larger tier: the SSD has memory's as well, unless its writer was too slow for some.
void database_size(RespCall& call) {
    call.out.integer(static_cast<std::int64_t>(call.service.store.entries()));
}

// ---- COMMAND --------------------------------------------------------------------------------------

void write_command(const RespCommand& command, kv::RespWriter& out) {
    out.array(10);
    out.text(command.name);
    out.integer(command.words);
    out.set(1);
    out.status(command.writes ? "write" : "readonly");
    out.integer(command.first_key);
    out.integer(command.last_key);
    out.integer(command.key_step);
    for (int i = 0; i < 4; ++i) out.array(0);  // Categories, tips, key specifications, subcommands.
}

void write_all_commands(kv::RespWriter& out) {
    std::size_t count = 0;
    for (const auto& group : all_commands()) count += group.size();
    out.array(count);
    for (const auto& group : all_commands())
        for (const RespCommand& command : group) write_command(command, out);
}

void command(RespCall& call) {
    kv::RespWriter& out = call.out;
    if (call.words.size() == 1) return write_all_commands(out);
    const std::string_view what = call.word(1);
    if (same_word(what, "count")) {
        std::size_t count = 0;
        for (const auto& group : all_commands()) count += group.size();
        return out.integer(static_cast<std::int64_t>(count));
    }
    if (same_word(what, "docs")) return out.map(0);
    if (same_word(what, "help")) {
        return write_help(
            out, {"COMMAND", "    All commands with their flags and keys.", "COMMAND COUNT",
                  "    How many there are.", "COMMAND DOCS", "    Nothing: there are none here.",
                  "COMMAND INFO [name ...]", "    These commands."});
    }
    if (same_word(what, "info")) {
        out.array(call.words.size() - 2);
        for (std::size_t i = 2; i < call.words.size(); ++i) {
            const RespCommand* const found = find_command(call.word(i));
            if (found == nullptr) {
                out.null_array();
            } else {
                write_command(*found, out);
            }
        }
        return;
    }
    out.error(fmt::format("ERR unknown subcommand '{}'. Try COMMAND HELP.", what.substr(0, 64)));
}

/// What benchmarks look at: nothing goes to a log or a snapshot.
void config(RespCall& call) {
    if (!same_word(call.word(1), "get"))
        return call.out.error("ERR a node's settings are its command line: CONFIG knows GET alone");
    std::vector<std::pair<std::string_view, std::string>> found;
    for (std::size_t i = 2; i < call.words.size(); ++i) {
        if (same_word(call.word(i), "save")) found.emplace_back("save", "");
        if (same_word(call.word(i), "appendonly")) found.emplace_back("appendonly", "no");
        if (same_word(call.word(i), "maxmemory"))
            found.emplace_back("maxmemory",
                               std::to_string(call.service.store.dram().options().bytes));
        if (same_word(call.word(i), "databases")) found.emplace_back("databases", "1");
    }
    call.out.map(found.size());
    for (const auto& [name, value] : found) {
        call.out.text(name);
        call.out.text(value);
    }
}

constexpr auto kCommands = std::to_array<RespCommand>({
    {"command", -1, false, 0, 0, 0, command},
    {"config", -2, false, 0, 0, 0, config},
    {"dbsize", 1, false, 0, 0, 0, database_size},
    {"flushall", -1, true, 0, 0, 0, flush},
    {"flushdb", -1, true, 0, 0, 0, flush},
    {"info", -1, false, 0, 0, 0, info},
});

}  // namespace

std::span<const RespCommand> server_commands() { return kCommands; }

}  // namespace sluice::kvnode
