#pragma once

// The commands of a cache node: a part of Redis's, and KV.LONGEST.

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

#include "kvnode/resp_call.h"

namespace sluice::kvnode {

struct RespCommand {
    std::string_view name;  ///< In lower case.
    int words = 1;          ///< The command's own included; negative: at least so many.
    bool writes = false;
    /// Which of its words are keys, as Redis counts them: from, to (negative: from the end), every.
    int first_key = 0;
    int last_key = 0;
    int key_step = 0;
    void (*run)(RespCall& call) = nullptr;
    bool before_auth = false;  ///< Allowed to those who have not said the password.
};

// By file.
[[nodiscard]] std::span<const RespCommand> value_commands();   ///< GET, SET, ...
[[nodiscard]] std::span<const RespCommand> change_commands();  ///< INCR, APPEND, ...
[[nodiscard]] std::span<const RespCommand> key_commands();     ///< DEL, EXPIRE, SCAN, ...
[[nodiscard]] std::span<const RespCommand> client_commands();  ///< AUTH, HELLO, ...
[[nodiscard]] std::span<const RespCommand> server_commands();  ///< INFO, COMMAND, ...

[[nodiscard]] inline std::array<std::span<const RespCommand>, 5> all_commands() {
    return {value_commands(), change_commands(), key_commands(), client_commands(),
            server_commands()};
}

/// In any case of letters; null if there is none.
[[nodiscard]] const RespCommand* find_command(std::string_view name);

/// Answers it, or says as Redis does what is wrong with it.
void run_command(RespCall& call);

// ---- What they have in common -----------------------------------------------------------------------

[[nodiscard]] bool same_word(std::string_view word, std::string_view lower_case);
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
void not_an_integer(kv::RespWriter& out);
void syntax_error(kv::RespWriter& out);
/// The answer to a command's HELP: a line each.
void write_help(kv::RespWriter& out, std::initializer_list<std::string_view> lines);
/// The value, with whatever fault is planted.
void write_value(NodeService& service, NodeClient& client, std::string_view name,
                 kv::SharedBytes value, kv::RespWriter& out);

}  // namespace sluice::kvnode
