#pragma once

// Which cache nodes there are: those of the configuration, and those that an operator added or took
// away while all runs. Each change makes a new epoch; workers follow the newest that they were told, so
// that a list that was late on its way changes nothing.
//
// The list outlives the gateway in a file of its state folder, written before a change counts. What the
// configuration says anew at a start counts as a change as well: its nodes come and go, those that were
// added by hand stay. Without a folder a list lives as long as the gateway.
//
// Passwords are no part of it: a node names the environment variable that holds its own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::gateway {

struct KvNode {
    std::string url;             ///< "redis://10.0.0.7:7301"
    std::string http{};          ///< Where a Sluice node says what it holds; empty: another server.
    std::string password_env{};  ///< Empty: it asks for none.
    bool operator==(const KvNode&) const = default;
};

/// Error `kInvalid` for what is no node, with the field's name as its place.
[[nodiscard]] Result<void> check_kv_node(const KvNode& node);

class KvMembers {
public:
    /// `path`: of the file; empty: none. An error if the file can't be read or written.
    [[nodiscard]] static Result<KvMembers> open(std::string path, std::vector<KvNode> configured);

    /// 0 while there never was a node: then workers keep what they were started with.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] const std::vector<KvNode>& nodes() const { return nodes_; }
    [[nodiscard]] const KvNode* find(std::string_view url) const;

    /// False if it was there like this already. Error `kInvalid`, also for a password that the
    /// environment doesn't have, `kExhausted` for one too many, or why the list can't be kept.
    [[nodiscard]] Result<bool> add(KvNode node);
    /// Error `kNotFound` if there is none of this URL.
    [[nodiscard]] Result<void> remove(std::string_view url);

    /// A worker follows this epoch, of whatever list: the next change of ours will be newer.
    void saw(std::uint64_t epoch);
    /// The same list with an epoch that is newer than all that were seen. An error if it can't be kept.
    [[nodiscard]] Result<void> overtake();

private:
    explicit KvMembers(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] Result<void> read();
    [[nodiscard]] Result<void> change(std::vector<KvNode> nodes);

    std::string path_;
    std::uint64_t epoch_ = 0;
    std::uint64_t seen_ = 0;
    std::vector<KvNode> nodes_;
    std::vector<KvNode> configured_;
};

/// From the environment; empty if it asks for none. Error `kInvalid` if the variable is not set.
[[nodiscard]] Result<std::string> password_of(const KvNode& node);

/// The URL with which `node` is called: with its password from the environment, if it has one. Error
/// `kInvalid` if the variable is not set.
[[nodiscard]] Result<std::string> url_with_password(const KvNode& node);

}  // namespace sluice::gateway
