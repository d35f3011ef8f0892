#include "worker/dram_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace sluice::worker {
namespace {

using kvnode::ChainPtr;
using kvnode::FoundBlock;

/// Values are handed on in groups of so many, between which the loop does other things.
constexpr std::size_t kGroup = 8;

kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

/// Of a load; the task on the other thread looks at it, too.
struct Wish {
    std::atomic<bool> cancelled = false;
};

class WishHandle final : public kvnode::Load {
public:
    explicit WishHandle(std::shared_ptr<Wish> wish) : wish_(std::move(wish)) {}
    ~WishHandle() override { wish_->cancelled = true; }
    WishHandle(const WishHandle&) = delete;
    WishHandle& operator=(const WishHandle&) = delete;

private:
    std::shared_ptr<Wish> wish_;
};

std::optional<Retention> class_of(const kv::DramTier& tier, const kvnode::Chain& chain,
                                  std::size_t index, kv::WallTime now) {
    for (const Retention retention : kvnode::lookup_order(chain.retention)) {
        const FoundBlock block{.index = index, .retention = retention};
        if (tier.contains(kv::to_wire(kvnode::name_of(chain, block)), now)) return retention;
    }
    return std::nullopt;
}

kvnode::Stored to_stored(kv::DramTier::Stored how) {
    switch (how) {
        case kv::DramTier::Stored::kStored: return kvnode::Stored::kStored;
        case kv::DramTier::Stored::kWasThere: return kvnode::Stored::kWasThere;
        case kv::DramTier::Stored::kDiffers: return kvnode::Stored::kDiffers;
        case kv::DramTier::Stored::kRefused: break;
    }
    return kvnode::Stored::kRefused;
}

}  // namespace

DramStore::DramStore(net::EventLoop& loop, TaskPool& tasks, kv::DramTier& tier)
    : loop_(loop), tasks_(tasks), tier_(tier) {}

template <class Work>
void DramStore::post(Work work) {
    loop_.post([weak = std::weak_ptr(alive_), work = std::move(work)] {
        if (!weak.expired()) work();
    });
}

void DramStore::find(ChainPtr chain, kvnode::Deadline /*deadline*/, OnFound on_found) {
    const kv::WallTime now = wall_now();
    std::vector<std::optional<Retention>> found;
    found.reserve(chain->keys.size());
    for (std::size_t i = 0; i < chain->keys.size(); ++i)
        found.push_back(class_of(tier_, *chain, i, now));
    post([found = std::move(found), on_found = std::move(on_found)] { on_found(found); });
}

std::unique_ptr<kvnode::Load> DramStore::load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                              kvnode::Deadline /*deadline*/, OnValue on_value,
                                              std::function<void()> on_done) {
    const auto wish = std::make_shared<Wish>();
    const auto give = [loop = &loop_, weak = std::weak_ptr(alive_), wish](auto work) {
        loop->post([weak, wish, work = std::move(work)] {
            if (!weak.expired() && !wish->cancelled) work();
        });
    };
    using Values = std::vector<std::pair<std::size_t, kv::SharedBytes>>;
    const auto give_values = [give, wish, on_value](Values values) {
        give([values = std::move(values), wish, on_value] {
            for (const auto& [index, value] : values)
                if (!wish->cancelled) on_value(index, value);
        });
    };
    const bool taken =
        tasks_.submit([tier = &tier_, chain = std::move(chain), blocks = std::move(blocks), wish,
                       give, give_values, on_done] {
            Values values;
            for (const FoundBlock& block : blocks) {
                if (wish->cancelled) return;
                auto value = tier->get(kv::to_wire(kvnode::name_of(*chain, block)), wall_now());
                if (value) values.emplace_back(block.index, std::move(value));
                if (values.size() == kGroup) give_values(std::exchange(values, {}));
            }
            give_values(std::move(values));
            give(on_done);
        });
    if (!taken) give(on_done);
    return std::make_unique<WishHandle>(wish);
}

void DramStore::store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
                      OnStored on_stored) {
    const auto answer = [loop = &loop_, weak = std::weak_ptr(alive_),
                         on_stored = std::move(on_stored)](kvnode::Stored how) {
        loop->post([weak, on_stored, how] {
            if (!weak.expired()) on_stored(how);
        });
    };
    if (chain->retention == Retention::kNone) return answer(kvnode::Stored::kFailed);
    const bool taken = tasks_.submit([tier = &tier_, chain = std::move(chain), index,
                                      value = std::move(value), answer] {
        const FoundBlock block{.index = index, .retention = chain->retention};
        answer(
            to_stored(tier->put(kv::to_wire(kvnode::name_of(*chain, block)), value, wall_now())));
    });
    if (!taken) answer(kvnode::Stored::kFailed);
}

void DramStore::touch(ChainPtr chain, std::vector<FoundBlock> blocks) {
    const kv::WallTime now = wall_now();
    std::ranges::sort(blocks, std::ranges::greater(), &FoundBlock::index);
    for (const FoundBlock& block : blocks)
        tier_.touch(kv::to_wire(kvnode::name_of(*chain, block)), now);
}

std::vector<kvnode::StoreStats> DramStore::stats() const {
    const kv::DramStats now = tier_.stats();
    return {{.where = "dram",
             .up = true,
             .hits = now.hits,
             .misses = now.misses,
             .stored = now.stored,
             .corrupt = now.corrupt,
             .differs = now.differs}};
}

}  // namespace sluice::worker
