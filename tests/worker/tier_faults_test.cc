// Everything that a store outside of a worker can do wrong, while requests go on: each of them is
// answered, with the tokens and log-probabilities of an engine that never saw a store.

#include <filesystem>

#include "kvnode/store_url.h"
#include "tests/kv/folder.h"
#include "tests/kvnode/fake_node.h"
#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;
using kvnode::testing::FakeNode;

using Fault = FakeNode::Fault;
using Logprobs = std::vector<port::PositionLogprobs>;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
constexpr std::size_t kBlocks = 6;

/// The four stories of these tests share no block.
port::GenerateRequest story(std::uint32_t number) {
    port::GenerateRequest asked = request(number, kBlocks * kBlock + 5, 8);
    asked.return_logprob = true;
    return asked;
}

Stream answer(TestWorker& worker, const port::GenerateRequest& asked) {
    FrameReader reader(worker.port(), asked);
    Stream stream = reader.rest();
    EXPECT_FALSE(stream.frames.empty());
    return stream;
}

Logprobs logprobs(const Stream& stream) {
    Logprobs all;
    for (const port::GenerateFrame& frame : stream.frames)
        all.insert(all.end(), frame.output_logprobs.begin(), frame.output_logprobs.end());
    return all;
}

bool took_from_store(const Stream& stream) {
    return !stream.frames.back().cached_tokens_by_source.empty();
}

TestWorker::Setup with_store(const std::string& url, const FaultPoints& faults = {}) {
    TestWorker::Setup setup;
    setup.kv.stores = {url};
    setup.kv.faults = faults;
    setup.kv.forced = kv::ForcedChoice::kLoad;
    setup.kv.find_time = setup.kv.load_time = 400ms;
    return setup;
}

class TierFaultsTest : public ::testing::Test {
protected:
    static constexpr std::uint32_t kStories = 4;

    void SetUp() override {
        TestWorker alone;
        for (std::uint32_t i = 0; i < kStories; ++i) right_.push_back(answer(alone, story(i)));
    }

    /// Asks a new worker for all of them; how many had something from the store.
    std::size_t ask_all(const TestWorker::Setup& setup) {
        TestWorker worker(setup);
        std::size_t taken = 0;
        for (std::uint32_t i = 0; i < kStories; ++i) {
            const Stream stream = answer(worker, story(i));
            EXPECT_EQ(stream.tokens(), right_[i].tokens()) << "story " << i;
            EXPECT_EQ(logprobs(stream), logprobs(right_[i])) << "story " << i;
            taken += took_from_store(stream) ? 1 : 0;
        }
        EXPECT_TRUE(worker.wait_until_idle());
        // What it computed is on its way there; a slow disk is not waited for by anybody.
        if (setup.kv.faults.disk_slow > 0ms) return taken;
        EXPECT_TRUE(worker.wait_until_published());
        return taken;
    }

    std::vector<Stream> right_;
};

// ---- A node ----------------------------------------------------------------------------------------

class NodeFaultsTest : public TierFaultsTest {
protected:
    /// Stories that are left there by a worker that has time.
    void leave() {
        TestWorker::Setup patient = with_store(node_.url());
        patient.kv.find_time = patient.kv.load_time = kPatience;
        ask_all(patient);
        EXPECT_GE(node_.data().size(), kStories * kBlocks);
        EXPECT_EQ(ask_all(patient), kStories);
    }

    FakeNode node_;
};

TEST_F(NodeFaultsTest, DamagedValuesAreComputed) {
    leave();
    node_.fault = Fault::kFlip;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
}

TEST_F(NodeFaultsTest, ValuesOfOtherKeysAreNeverTaken) {
    leave();
    node_.fault = Fault::kOtherKey;
    ask_all(with_store(node_.url()));
}

TEST_F(NodeFaultsTest, RepliesThatAreCutAreComputed) {
    leave();
    node_.fault = Fault::kCut;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
}

TEST_F(NodeFaultsTest, RepliesThatHangAreComputedByTheDeadline) {
    leave();
    node_.fault = Fault::kHang;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
}

TEST_F(NodeFaultsTest, ANodeThatSaysNothingIsNotWaitedFor) {
    leave();
    node_.fault = Fault::kSilent;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
}

TEST_F(NodeFaultsTest, ErrorsAndNonsenseAreComputed) {
    leave();
    node_.fault = Fault::kLoading;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
    node_.fault = Fault::kGarbage;
    EXPECT_EQ(ask_all(with_store(node_.url())), 0U);
}

TEST_F(NodeFaultsTest, WhatFailsInTurnsNeverShows) {
    leave();
    TestWorker::Setup setup = with_store(node_.url());
    setup.kv.find_time = setup.kv.load_time = kPatience;
    setup.engine.pool_tokens = 10 * kBlock;  // Of each story the most is gone when it comes again.
    TestWorker worker(setup);
    std::uint32_t number = 0;
    std::size_t taken = 0;
    for (int round = 0; round < 3; ++round) {
        for (const Fault fault :
             {Fault::kFlip, Fault::kNone, Fault::kNone, Fault::kCut, Fault::kOtherKey}) {
            node_.fault = fault;
            const std::uint32_t i = number++ % kStories;
            port::GenerateRequest asked = story(i);
            asked.rid = rid(100 + number);
            const Stream stream = answer(worker, asked);
            EXPECT_EQ(stream.tokens(), right_[i].tokens());
            taken += stream.frames.back().cached_tokens_by_source.contains("node") ? 1 : 0;
            // Blocks on their way out hold their place in the pool: none would be left to load to.
            EXPECT_TRUE(worker.wait_until_published());
        }
    }
    EXPECT_GT(taken, 0U);
    EXPECT_TRUE(worker.wait_until_idle());
}

// ---- A directory -----------------------------------------------------------------------------------

class DirectoryFaultsTest : public TierFaultsTest {
protected:
    [[nodiscard]] std::string url() const { return "dir://" + folder_.path().string(); }
    void leave() {
        TestWorker::Setup patient = with_store(url());
        patient.kv.find_time = patient.kv.load_time = kPatience;
        ask_all(patient);
        EXPECT_EQ(ask_all(patient), kStories);
    }

    kv::testing::Folder folder_;
};

TEST_F(DirectoryFaultsTest, BitsThatChangeAreComputed) {
    leave();
    EXPECT_EQ(ask_all(with_store(url(), {.disk_flip = true})), 0U);
}

TEST_F(DirectoryFaultsTest, ReadsThatEndEarlyAreComputed) {
    leave();
    EXPECT_EQ(ask_all(with_store(url(), {.disk_short = true})), 0U);
}

TEST_F(DirectoryFaultsTest, ReadsAndWritesThatFailAreComputed) {
    leave();
    EXPECT_EQ(ask_all(with_store(url(), {.disk_error = true})), 0U);
}

TEST_F(DirectoryFaultsTest, AFullDiskKeepsNothingAndFailsNothing) {
    EXPECT_EQ(ask_all(with_store(url(), {.disk_full = true})), 0U);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
        EXPECT_FALSE(entry.path().filename().string().starts_with("kv:")) << entry.path();
}

TEST_F(DirectoryFaultsTest, ADiskThatTakesTwoSecondsIsNotWaitedFor) {
    leave();
    EXPECT_EQ(ask_all(with_store(url(), {.disk_slow = 2s})), 0U);
}

}  // namespace
}  // namespace sluice::worker
