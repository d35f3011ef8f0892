#pragma once

// One look-up of a chain's blocks among members. Every block is asked for on its own: holes are
// normal. What the first answer doesn't settle is asked again of the next class or member, and
// because the answers come together, so do these questions.

#include <memory>
#include <optional>
#include <vector>

#include "kvnode/route.h"

namespace sluice::kvnode {

class ChainFind : public std::enable_shared_from_this<ChainFind> {
public:
    /// `routes` has one entry for each extent of the chain.
    ChainFind(ChainPtr chain, std::vector<RoutePtr> routes, Deadline deadline,
              BlockStore::OnFound on_found)
        : chain_(std::move(chain)),
          routes_(std::move(routes)),
          deadline_(deadline),
          on_found_(std::move(on_found)),
          found_(chain_->keys.size()) {}

    /// False if there is nobody to ask; `finish` is then to be called.
    [[nodiscard]] bool start();
    void finish();

private:
    /// Which block is asked for, of which member, in which class.
    struct Question {
        std::size_t block = 0;
        std::size_t member = 0;
        std::size_t order = 0;  ///< Of `lookup_order`.
    };

    void ask(Question question);
    void answered(const Question& question, const Result<kv::RespReply>& reply);
    void measure(KvMember& member);

    const ChainPtr chain_;
    const std::vector<RoutePtr> routes_;
    const Deadline deadline_;
    BlockStore::OnFound on_found_;
    std::vector<std::optional<kv::Retention>> found_;
    std::size_t open_ = 0;  ///< Questions without an answer.
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::vector<const KvMember*> measured_;
};

}  // namespace sluice::kvnode
