// Commands about the connection: who is there, and what it speaks.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/version.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

constexpr std::size_t kClientTextBytes = 256;

/// The only user is "default"; without a password of the node, any is right.
bool log_in(RespCall& call, std::string_view user, std::string_view password) {
    const bool right =
        !call.service.password || equal_in_constant_time(sha256(password), *call.service.password);
    if (!right || user != "default") return false;
    call.client.authenticated = true;
    return true;
}

void wrong_password(kv::RespWriter& out) {
    out.error("WRONGPASS invalid username-password pair or user is disabled.");
}

void auth(RespCall& call) {
    if (call.words.size() > 3) return syntax_error(call.out);
    const bool named = call.words.size() == 3;
    if (!named && !call.service.password) {
        return call.out.error(
            "ERR AUTH <password> called without any password configured for the default user. "
            "Are you sure your configuration is correct?");
    }
    if (!log_in(call, named ? call.word(1) : "default", call.word(named ? 2 : 1)))
        return wrong_password(call.out);
    call.out.status("OK");
}

/// Printable, without spaces: it stands in CLIENT LIST.
bool fits_in_list(std::string_view text) {
    return text.size() <= kClientTextBytes &&
           std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

void no_such_name(kv::RespWriter& out) {
    out.error("ERR Client names cannot contain spaces, newlines or special characters.");
}

void write_greeting(RespCall& call) {
    kv::RespWriter& out = call.out;
    out.map(7);
    out.text(std::string_view("server"));
    out.text(std::string_view("sluice"));
    out.text(std::string_view("version"));
    out.text(version().version);
    out.text(std::string_view("proto"));
    out.integer(out.version());
    out.text(std::string_view("id"));
    out.integer(static_cast<std::int64_t>(call.client.id));
    out.text(std::string_view("mode"));
    out.text(std::string_view("standalone"));
    out.text(std::string_view("role"));
    out.text(std::string_view("master"));
    out.text(std::string_view("modules"));
    out.array(0);
}

void hello(RespCall& call) {
    const auto wanted = call.words.size() > 1 ? parse_integer(call.word(1))
                                              : std::optional<std::int64_t>(call.out.version());
    if (!wanted) return call.out.error("ERR Protocol version is not an integer or out of range");
    if (*wanted != 2 && *wanted != 3) return call.out.error("NOPROTO unsupported protocol version");
    for (std::size_t i = 2; i < call.words.size();) {
        if (same_word(call.word(i), "auth") && i + 2 < call.words.size()) {
            if (!log_in(call, call.word(i + 1), call.word(i + 2))) return wrong_password(call.out);
            i += 3;
        } else if (same_word(call.word(i), "setname") && i + 1 < call.words.size()) {
            if (!fits_in_list(call.word(i + 1))) return no_such_name(call.out);
            call.client.name = call.word(i + 1);
            i += 2;
        } else {
            return call.out.error(
                fmt::format("ERR Syntax error in HELLO option '{}'", call.word(i).substr(0, 64)));
        }
    }
    if (!call.client.authenticated) {
        return call.out.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
            "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
            "select the RESP protocol version at the same time");
    }
    call.out.set_version(static_cast<int>(*wanted));
    write_greeting(call);
}

std::string describe(const NodeClient& client) {
    const auto age = std::chrono::steady_clock::now() - client.since;
    return fmt::format("id={} addr={} name={} age={} db=0 lib-name={} lib-ver={}\n", client.id,
                       client.peer, client.name,
                       std::chrono::duration_cast<std::chrono::seconds>(age).count(),
                       client.library, client.library_version);
}

void set_info(RespCall& call) {
    if (!fits_in_list(call.word(3))) return no_such_name(call.out);
    if (same_word(call.word(2), "lib-name")) {
        call.client.library = call.word(3);
    } else if (same_word(call.word(2), "lib-ver")) {
        call.client.library_version = call.word(3);
    } else {
        return call.out.error(
            fmt::format("ERR Unrecognized option '{}'", call.word(2).substr(0, 64)));
    }
    call.out.status("OK");
}

void client(RespCall& call) {
    const std::string_view what = call.word(1);
    const std::size_t words = call.words.size();
    if (same_word(what, "setname") && words == 3) {
        if (!fits_in_list(call.word(2))) return no_such_name(call.out);
        call.client.name = call.word(2);
        return call.out.status("OK");
    }
    if (same_word(what, "getname") && words == 2) {
        if (call.client.name.empty()) return call.out.null();
        return call.out.text(call.client.name);
    }
    if (same_word(what, "id") && words == 2)
        return call.out.integer(static_cast<std::int64_t>(call.client.id));
    if (same_word(what, "setinfo") && words == 4) return set_info(call);
    if (same_word(what, "info") && words == 2) return call.out.text(describe(call.client));
    if (same_word(what, "list")) {
        std::string list;
        for (const auto& [id, each] : call.service.clients) list += describe(*each);
        return call.out.text(list);
    }
    if (same_word(what, "help")) {
        return write_help(call.out,
                          {"CLIENT GETNAME", "CLIENT SETNAME name", "CLIENT ID", "CLIENT INFO",
                           "CLIENT LIST", "CLIENT SETINFO LIB-NAME|LIB-VER text"});
    }
    call.out.error(fmt::format(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.",
        what.substr(0, 64)));
}

void ping(RespCall& call) {
    if (call.words.size() > 2)
        return call.out.error("ERR wrong number of arguments for 'ping' command");
    if (call.words.size() == 2) return call.out.text(call.words[1].take_shared());
    call.out.status("PONG");
}

void echo(RespCall& call) { call.out.text(call.words[1].take_shared()); }

void select(RespCall& call) {
    const auto number = parse_integer(call.word(1));
    if (!number) return not_an_integer(call.out);
    if (*number != 0) return call.out.error("ERR DB index is out of range");
    call.out.status("OK");
}

void quit(RespCall& call) {
    call.client.quitting = true;
    call.out.status("OK");
}

constexpr auto kCommands = std::to_array<RespCommand>({
    {"auth", -2, false, 0, 0, 0, auth, true},
    {"client", -2, false, 0, 0, 0, client},
    {"echo", 2, false, 0, 0, 0, echo},
    {"hello", -1, false, 0, 0, 0, hello, true},
    {"ping", -1, false, 0, 0, 0, ping},
    {"quit", -1, false, 0, 0, 0, quit, true},
    {"select", 2, false, 0, 0, 0, select},
});

}  // namespace

std::span<const RespCommand> client_commands() { return kCommands; }

}  // namespace sluice::kvnode
