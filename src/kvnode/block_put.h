#pragma once

// One block on its way to its owners. The first writer of a name wins (SET NX). Whoever comes later
// compares what is there with what it has, by their headers alone: the same payload needs no second
// copy, a broken one is replaced, and another one is worth an alarm, once the whole value has been
// read and found sound.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kv/retention.h"
#include "kvnode/route.h"

namespace sluice::kvnode {

/// When a write is given up that nobody waits for.
[[nodiscard]] Deadline store_deadline();

/// SET name value NX EX life.
[[nodiscard]] RespRequest set_request(const std::string& name, const kv::SharedBytes& value,
                                      std::chrono::milliseconds life);

class BlockPut : public std::enable_shared_from_this<BlockPut> {
public:
    BlockPut(std::string name, kv::SharedBytes value, std::chrono::milliseconds life,
             RoutePtr route, BlockStore::OnStored on_stored)
        : name_(std::move(name)),
          value_(std::move(value)),
          life_(life),
          route_(std::move(route)),
          on_stored_(std::move(on_stored)) {}

    /// False if there is nobody to write to; `finish` is then to be called.
    [[nodiscard]] bool start();
    /// With the best of what all owners said, but that a difference anywhere is a difference.
    void finish();

private:
    using Answer = void (BlockPut::*)(std::size_t owner, const kv::RespReply& reply);

    void ask(std::size_t owner, RespRequest request, Answer answer);
    void set(std::size_t owner);
    void set_answered(std::size_t owner, const kv::RespReply& reply);
    void start_read(std::size_t owner, const kv::RespReply& reply);
    void whole_read(std::size_t owner, const kv::RespReply& reply);
    /// What is there is of no use: away with it, and once more.
    void replace(std::size_t owner);
    void replaced(std::size_t owner, const kv::RespReply& reply);
    void ended(std::size_t owner, Stored how);

    const std::string name_;
    const kv::SharedBytes value_;
    const std::chrono::milliseconds life_;
    const RoutePtr route_;
    BlockStore::OnStored on_stored_;
    const Deadline deadline_ = store_deadline();
    std::optional<Stored> outcome_;  ///< Of the owners that are done.
    std::size_t open_ = 0;           ///< Owners that are not done.
    int replacements_ = 0;
};

}  // namespace sluice::kvnode
