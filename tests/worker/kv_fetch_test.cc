#include "worker/kv_fetch.h"

#include <gmock/gmock.h>

#include <future>

#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::ElementsAre;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;

/// Says that it has everything, at once or when the test says so, and brings nothing.
class FakeStore final : public kvnode::BlockStore {
public:
    explicit FakeStore(net::EventLoop& loop) : loop_(loop) {}

    void find(kvnode::ChainPtr chain, kvnode::Deadline, OnFound on_found) override {
        ++finds;
        std::vector<std::optional<Retention>> found(chain->keys.size(), Retention::kChat);
        if (holes_from) std::fill(found.begin(), found.begin() + *holes_from, std::nullopt);
        auto answer = [on_found = std::move(on_found), found] { on_found(found); };
        if (answers) return loop_.post(std::move(answer));
        late.emplace_back(std::move(answer));
    }
    [[nodiscard]] std::unique_ptr<kvnode::Load> load(kvnode::ChainPtr,
                                                     std::vector<kvnode::FoundBlock> blocks,
                                                     kvnode::Deadline, OnValue,
                                                     std::function<void()> on_done) override {
        for (const kvnode::FoundBlock& each : blocks) asked.push_back(each.index);
        loop_.post(std::move(on_done));
        return std::make_unique<kvnode::Load>();
    }
    void store(kvnode::ChainPtr, std::size_t, kv::SharedBytes, OnStored) override {}
    void touch(kvnode::ChainPtr, std::vector<kvnode::FoundBlock>) override {}
    [[nodiscard]] std::vector<kvnode::StoreStats> stats() const override { return {}; }

    bool answers = true;
    std::optional<std::ptrdiff_t> holes_from;  ///< So many of the first blocks it doesn't have.
    std::size_t finds = 0;
    std::vector<std::function<void()>> late;
    std::vector<std::size_t> asked;

private:
    net::EventLoop& loop_;
};

// An engine, and made-up tiers. Everything but `fetch` on the loop's thread.
class KvFetchTest : public ::testing::Test {
protected:
    KvFetchTest() {
        auto created = engine::Engine::create(tiny_model(), {.pool_tokens = 65'536});
        engine_ = std::move(*created);
        engine_->start();
        loop().call([this] {
            client_.emplace(loop().loop());
            releases_.emplace(*client_);
        });
    }
    ~KvFetchTest() override {
        engine_->stop();
        loop().call([this] {
            tiers_.all.clear();
            releases_.reset();
            client_.reset();
        });
    }

    FakeStore& add(const char* name, kv::TierSpeed speed) {
        auto store = std::make_unique<FakeStore>(loop().loop());
        FakeStore& added = *store;
        tiers_.all.push_back(std::make_unique<KvTier>(
            KvTier{.name = name, .store = std::move(store), .speed = speed}));
        return added;
    }
    /// Of a prompt of `blocks` blocks that nobody asked before.
    KvFetch::Fetched fetch(std::size_t blocks) {
        std::promise<KvFetch::Fetched> done;
        std::shared_ptr<KvFetch> running;
        loop().call([&] {
            running =
                KvFetch::start({.loop = loop().loop(),
                                .client = *client_,
                                .engine = *engine_,
                                .options = options_,
                                .releases = *releases_,
                                .tiers = tiers_},
                               request(++requests_, blocks * kBlock + 1, 1),
                               [&](const KvFetch::Fetched& fetched) { done.set_value(fetched); });
        });
        auto fetched = done.get_future().get();
        loop().call([&] { running.reset(); });
        return fetched;
    }
    [[nodiscard]] LoopThread& loop() { return loop_; }

    LoopThread loop_;
    std::unique_ptr<engine::Engine> engine_;
    KvOptions options_;
    KvTiers tiers_;
    std::optional<net::HttpClient> client_;
    std::optional<KvReleases> releases_;
    std::uint32_t requests_ = 0;
};

/// A second for whatever it is.
kv::TierSpeed slow() { return kv::TierSpeed(1s, 1e9); }
/// So quick that anything is better loaded.
kv::TierSpeed quick() { return kv::TierSpeed(1ns, 1e18); }

kv::TierSpeed measured(kv::TierSpeed speed) {
    speed.loaded(1, speed.predict(1), steady_clock::now());
    speed.asked(speed.round_trip(), steady_clock::now());
    return speed;
}

TEST_F(KvFetchTest, ALookUpIsNotWaitedForLongerThanItCouldSave) {
    tiers_.find_time = 1h;
    FakeStore& node = add("node", quick());
    node.answers = false;
    const KvFetch::Fetched fetched = fetch(4);
    EXPECT_THAT(fetched.sources, ElementsAre("", "", "", ""));
    EXPECT_EQ(node.finds, 1U);
}

TEST_F(KvFetchTest, WhatAnswersTooLateIsNotAskedAgainForAWhile) {
    tiers_.find_time = 1h;
    FakeStore& node = add("node", quick());
    node.answers = false;
    static_cast<void>(fetch(4));
    loop().call([&] {
        // As if the answer had come after a second.
        tiers_.all.front()->speed = kv::TierSpeed(1s, 1e9);
        node.late.front()();
    });
    EXPECT_GT(tiers_.all.front()->speed.round_trip(), 500ms);
    static_cast<void>(fetch(4));
    EXPECT_EQ(node.finds, 1U);
}

TEST_F(KvFetchTest, ASlowTierIsAskedNowAndThen) {
    FakeStore& node = add("node", slow());
    static_cast<void>(fetch(4));
    EXPECT_EQ(node.finds, 1U) << "nobody has asked for long";
}

TEST_F(KvFetchTest, ASlowTierDoesNotCostWhatAQuickOneHas) {
    tiers_.find_time = 1h;
    FakeStore& memory = add("dram", measured(quick()));
    FakeStore& node = add("node", measured(kv::TierSpeed(1ns, 1)));
    node.holes_from = 0;
    memory.holes_from = 2;
    const KvFetch::Fetched fetched = fetch(4);
    EXPECT_THAT(memory.asked, ElementsAre(2, 3));
    EXPECT_TRUE(node.asked.empty());
    ASSERT_EQ(fetched.loads.size(), 2U);
    EXPECT_EQ(fetched.loads[0].choice, kv::LoadChoice::kLoad);
    EXPECT_EQ(fetched.loads[0].blocks, 2U);
    EXPECT_EQ(fetched.loads[1].choice, kv::LoadChoice::kRecompute);
    EXPECT_EQ(fetched.loads[1].blocks, 2U);
    EXPECT_EQ(fetched.loads[1].took, 0ns);
    EXPECT_GT(fetched.loads[1].predicted.load, fetched.loads[1].predicted.compute);
    EXPECT_GT(fetched.predicted, 0ns);
}

TEST_F(KvFetchTest, AProbeIsOfTheTierThatNobodyTried) {
    tiers_.find_time = 1h;
    FakeStore& memory = add("dram", measured(quick()));
    FakeStore& node = add("node", kv::TierSpeed(1ns, 1));
    memory.holes_from = 10;
    const KvFetch::Fetched fetched = fetch(20);
    EXPECT_EQ(memory.asked.size(), 10U);
    EXPECT_THAT(node.asked, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(fetched.loads.at(1).choice, kv::LoadChoice::kProbe);
}

}  // namespace
}  // namespace sluice::worker
