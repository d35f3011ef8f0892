#pragma once

// One load of blocks of a chain from members. A value counts only when its checksums are right and it
// says that it is the block that was asked for; one that doesn't is removed from where it came from.
// A block that comes from an earlier owner is handed on and stored at the present ones (pulled through).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kv/retention.h"
#include "kvnode/route.h"

namespace sluice::kvnode {

class ChainLoad : public std::enable_shared_from_this<ChainLoad> {
public:
    /// `routes` has one entry for each of `blocks`.
    ChainLoad(ChainPtr chain, std::vector<FoundBlock> blocks, std::vector<RoutePtr> routes,
              const kv::RetentionTimes& times, Deadline deadline, BlockStore::OnValue on_value,
              std::function<void()> on_done)
        : chain_(std::move(chain)),
          blocks_(std::move(blocks)),
          routes_(std::move(routes)),
          times_(times),
          deadline_(deadline),
          on_value_(std::move(on_value)),
          on_done_(std::move(on_done)) {}

    /// False if there is nobody to ask; `finish` is then to be called.
    [[nodiscard]] bool start();
    void finish();
    /// Nobody is called any more; what has not been asked for isn't.
    void cancel();

private:
    /// Which of `blocks_` is asked for, and of whom.
    struct Question {
        std::size_t at = 0;
        std::size_t member = 0;
        std::uint64_t missed = 0;  ///< One bit for each member that said it has it not.
    };

    struct Received {
        std::size_t bytes = 0;
        std::chrono::steady_clock::time_point last;
    };

    void ask(Question question);
    void answered(Question question, Result<kv::RespReply> reply);
    /// Whether the value is the block, and handed on.
    [[nodiscard]] bool take(const Question& question, const std::string& name,
                            const kv::SharedBytes& value);
    void reject(KvMember& member, const std::string& name, bool other_block);
    void pull(const Question& question, const std::string& name, const kv::SharedBytes& value);
    [[nodiscard]] std::string name(const Question& question) const {
        return kv::to_wire(name_of(*chain_, blocks_[question.at]));
    }

    const ChainPtr chain_;
    const std::vector<FoundBlock> blocks_;
    const std::vector<RoutePtr> routes_;
    const kv::RetentionTimes times_;
    const Deadline deadline_;
    BlockStore::OnValue on_value_;
    std::function<void()> on_done_;
    std::shared_ptr<const bool> wanted_ = std::make_shared<const bool>(true);
    std::size_t open_ = 0;  ///< Questions without an answer.
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::map<KvMember*, Received> received_;
};

}  // namespace sluice::kvnode
