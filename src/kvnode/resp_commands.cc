#include "kvnode/resp_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/log.h"

namespace sluice::kvnode {
namespace {

constexpr std::size_t kNameShown = 128;  ///< Of what nobody knows; as Redis shows it.

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

void unknown_command(RespCall& call) {
    std::string shown;
    for (std::size_t i = 1; i < call.words.size() && shown.size() < kNameShown; ++i)
        shown += fmt::format("'{}' ", call.word(i).substr(0, kNameShown - shown.size()));
    call.out.error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                               call.word(0).substr(0, kNameShown), shown));
}

/// Of a request of HTTP, whose lines look like inline commands, the first word of some line: a browser
/// sends them wherever a page says, and the page's own lines after them.
bool is_http(std::string_view word) { return same_word(word, "post") || same_word(word, "host:"); }

void refuse_http(RespCall& call) {
    log::warn("{} speaks HTTP to the port for RESP: the connection is closed", call.client.peer);
    ++call.service.clients_cut;
    call.client.quitting = true;
    call.out.error("ERR this port speaks RESP, not HTTP");
}

/// Another value than the one that was asked for.
kv::SharedBytes another(NodeService& service, std::string_view name) {
    kv::SharedBytes found;
    service.store.dram().for_each(wall_now(), [&](const kv::DramTier::Item& item) {
        if (!found && item.name != name) found = item.value;
    });
    return found;
}

kv::SharedBytes with_flipped_bit(std::string_view value) {
    std::string text(value);
    if (!text.empty()) text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 0x10);
    return kv::SharedBytes::own(std::move(text));
}

}  // namespace

bool same_word(std::string_view word, std::string_view lower_case) {
    return std::ranges::equal(word, lower_case, {}, lower);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && !text.empty() ? std::optional(value) : std::nullopt;
}

void not_an_integer(kv::RespWriter& out) {
    out.error("ERR value is not an integer or out of range");
}

void syntax_error(kv::RespWriter& out) { out.error("ERR syntax error"); }

void write_help(kv::RespWriter& out, std::initializer_list<std::string_view> lines) {
    out.array(lines.size());
    for (const std::string_view line : lines) out.status(line);
}

const RespCommand* find_command(std::string_view name) {
    static const auto kByName = [] {
        std::unordered_map<std::string_view, const RespCommand*> commands;
        for (const auto& group : all_commands())
            for (const RespCommand& command : group) commands.emplace(command.name, &command);
        return commands;
    }();
    std::array<char, 16> text{};
    if (name.size() > text.size()) return nullptr;
    std::ranges::transform(name, text.begin(), lower);
    const auto found = kByName.find({text.data(), name.size()});
    return found == kByName.end() ? nullptr : found->second;
}

void run_command(RespCall& call) {
    ++call.service.commands;
    const RespCommand* const command = find_command(call.word(0));
    if (command == nullptr)
        return is_http(call.word(0)) ? refuse_http(call) : unknown_command(call);
    const auto words = static_cast<std::int64_t>(call.words.size());
    if (command->words >= 0 ? words != command->words : words < -command->words) {
        return call.out.error(
            fmt::format("ERR wrong number of arguments for '{}' command", command->name));
    }
    if (!call.client.authenticated && !command->before_auth)
        return call.out.error("NOAUTH Authentication required.");
    command->run(call);
}

void write_value(NodeService& service, NodeClient& client, std::string_view name,
                 kv::SharedBytes value, kv::RespWriter& out) {
    if (service.faults.node_other_key)
        if (auto other = another(service, name)) value = std::move(other);
    if (service.faults.node_flip) value = with_flipped_bit(value.bytes);
    if (service.faults.node_cut) client.fault = NodeClient::Fault::kCut;
    if (service.faults.node_hang) client.fault = NodeClient::Fault::kHang;
    service.bytes_read += value.bytes.size();
    out.text(std::move(value));
}

}  // namespace sluice::kvnode
