#include "kvnode/directory_store.h"

#include <fstream>

#include "tests/kvnode/support.h"

namespace sluice::kvnode {
namespace {

using namespace std::chrono_literals;
using testing::after;
using testing::all_blocks;
using testing::blocks;
using testing::Found;
using testing::make_chain;
using testing::value_of;
using testing::Values;

using kv::Retention;

/// Holds threads up while it is closed.
class Gate {
public:
    void close() { set(false); }
    void open() { set(true); }
    void pass() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return open_; });
    }

private:
    void set(bool open) {
        const std::lock_guard lock(mutex_);
        open_ = open;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = true;
};

/// A store on a loop of its own.
class TestStore {
public:
    using Now = std::function<kv::WallTime()>;

    explicit TestStore(const std::filesystem::path& path, const FaultPoints& faults = {})
        : TestStore(path, std::chrono::system_clock::now, faults) {}
    TestStore(const std::filesystem::path& path, const Now& now, const FaultPoints& faults = {}) {
        loop.call([&] {
            auto opened = DirectoryStore::open(
                loop.loop(),
                {.path = path, .faults = faults, .readers = 2, .sweep_pace = 1ms, .now = now});
            EXPECT_TRUE(opened.has_value());
            store = *std::move(opened);
        });
    }
    ~TestStore() {
        loop.call([&] { store.reset(); });
    }
    testing::StoreCalls* operator->() {
        calls.emplace(loop, *store);
        return &*calls;
    }

    testing::LoopThread loop;
    std::unique_ptr<DirectoryStore> store;
    std::optional<testing::StoreCalls> calls;
};

class DirectoryStoreTest : public ::testing::Test {
protected:
    kv::testing::Folder folder;
};

TEST_F(DirectoryStoreTest, WhatOneProcessStoresAnotherFindsAndLoads) {
    const ChainPtr chain = make_chain("a", 40);
    TestStore writer(folder.path());
    writer->store_all(chain);
    TestStore reader(folder.path());
    EXPECT_EQ(reader->find(chain), Found(40, Retention::kChat));
    const Values values = reader->load(chain, all_blocks(*chain));
    ASSERT_EQ(values.size(), 40U);
    for (const auto& [index, value] : values) EXPECT_EQ(value, value_of(*chain, index));
    EXPECT_EQ(reader->stats().hits, 40U);
    EXPECT_EQ(reader->stats().bytes_read, 40 * value_of(*chain, 0).size());
    EXPECT_GT(reader.loop.call([&] { return reader.store->stats().front().bytes_per_second; }), 0);
    EXPECT_EQ(writer->stats().stored, 40U);
}

TEST_F(DirectoryStoreTest, HolesAndOtherClassesAreSeenAsTheyAre) {
    const ChainPtr chat = make_chain("a", 5);
    const ChainPtr agent = make_chain("a", 5, Retention::kAgent);
    TestStore store(folder.path());
    EXPECT_EQ(store->store(chat, 0, value_of(*chat, 0)), Stored::kStored);
    EXPECT_EQ(store->store(agent, 2, value_of(*agent, 2)), Stored::kStored);
    EXPECT_EQ(store->store(agent, 4, value_of(*agent, 4)), Stored::kStored);
    EXPECT_EQ(store->store(chat, 4, value_of(*chat, 4)), Stored::kStored);
    const auto none = std::nullopt;
    EXPECT_EQ(store->find(chat),
              (Found{Retention::kChat, none, Retention::kAgent, none, Retention::kChat}));
    EXPECT_EQ(store->find(agent),
              (Found{Retention::kChat, none, Retention::kAgent, none, Retention::kAgent}));
    // A class that keeps nothing reads what others keep.
    EXPECT_EQ(store->find(make_chain("a", 5, Retention::kNone)),
              (Found{Retention::kChat, none, Retention::kAgent, none, Retention::kAgent}));
    EXPECT_EQ(store->load(chat, {{0, Retention::kChat}, {2, Retention::kAgent}}).size(), 2U);
    EXPECT_EQ(store->find(make_chain("a", 5, Retention::kChat, "other")), Found(5));
}

TEST_F(DirectoryStoreTest, NothingIsStoredForAClassThatKeepsNothing) {
    const ChainPtr none = make_chain("a", 1, Retention::kNone);
    TestStore store(folder.path());
    EXPECT_EQ(store->store(none, 0, value_of(*none, 0)), Stored::kFailed);
    EXPECT_EQ(store->find(none), Found(1));
}

TEST_F(DirectoryStoreTest, ALongChainThatIsNotThereIsNotLookedForToItsEnd) {
    const ChainPtr chain = make_chain("a", 200);
    TestStore store(folder.path());
    for (const std::size_t index : {60U, 199U})
        EXPECT_EQ(store->store(chain, index, value_of(*chain, index)), Stored::kStored);
    const Found found = store->find(chain);
    EXPECT_TRUE(found[60].has_value());
    EXPECT_FALSE(found[199].has_value());
}

TEST_F(DirectoryStoreTest, TheSecondOfTwoWritersIsToldWhatIsThere) {
    const ChainPtr chain = make_chain("a", 1);
    TestStore one(folder.path());
    TestStore two(folder.path());
    EXPECT_EQ(one->store(chain, 0, value_of(*chain, 0)), Stored::kStored);
    EXPECT_EQ(two->store(chain, 0, value_of(*chain, 0)), Stored::kWasThere);
    EXPECT_EQ(two->store(chain, 0, value_of(*chain, 0, "other bits")), Stored::kDiffers);
    EXPECT_EQ(two->stats().differs, 1U);
    EXPECT_EQ(one->load(chain, blocks({0})).at(0), value_of(*chain, 0));
}

TEST_F(DirectoryStoreTest, BrokenBlocksAreMissingAndTheRestIsLoaded) {
    const ChainPtr chain = make_chain("a", 20);
    TestStore store(folder.path());
    store->store_all(chain);
    std::size_t broken = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
        if (!entry.is_regular_file() || entry.path().filename() == ".swept") continue;
        if (++broken > 5) break;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-3, std::ios::end);
        file << '!';
    }
    EXPECT_EQ(store->load(chain, all_blocks(*chain)).size(), 15U);
    EXPECT_EQ(store->stats().corrupt, 5U);
    const Found found = store->find(chain);  // They are gone, too.
    EXPECT_EQ(std::ranges::count_if(found, [](const auto& one) { return !one; }), 5);
}

TEST_F(DirectoryStoreTest, AFullOrFailingDiskIsAMissAndNothingWorse) {
    const ChainPtr chain = make_chain("a", 3);
    TestStore full(folder.path(), {.disk_full = true});
    EXPECT_EQ(full->store(chain, 0, value_of(*chain, 0)), Stored::kFailed);
    EXPECT_EQ(full->stats().errors, 1U);
    // It isn't tried again at once.
    EXPECT_EQ(full->store(chain, 1, value_of(*chain, 1)), Stored::kFailed);
    EXPECT_EQ(full->stats().refused, 1U);
    TestStore failing(folder.path(), {.disk_error = true});
    EXPECT_EQ(failing->find(chain), Found(3));
    EXPECT_TRUE(failing->load(chain, all_blocks(*chain)).empty());
    EXPECT_EQ(failing->stats().errors, 3U);
}

TEST_F(DirectoryStoreTest, ASlowDiskIsAMissByTheDeadlineAndDownUntilItAnswers) {
    const ChainPtr chain = make_chain("a", 3);
    TestStore(folder.path())->store_all(chain);
    Gate disk;
    TestStore slow(folder.path(), [&] {
        disk.pass();
        return std::chrono::system_clock::now();
    });
    disk.close();
    EXPECT_TRUE(slow->load(chain, all_blocks(*chain), after(10ms)).empty());
    EXPECT_EQ(slow->stats().timeouts, 1U);
    EXPECT_FALSE(slow->stats().up);
    EXPECT_EQ(slow->find(chain), Found(3));  // Not even tried.
    EXPECT_GE(slow->stats().refused, 1U);
    disk.open();
    EXPECT_TRUE(slow->wait_until([](const StoreStats& stats) { return stats.up; }));
    EXPECT_EQ(slow->load(chain, all_blocks(*chain)).size(), 3U);
}

TEST_F(DirectoryStoreTest, ADeadlineThatIsOverIsAnAnswerAndNoFaultOfTheDisk) {
    const ChainPtr chain = make_chain("a", 3);
    TestStore store(folder.path());
    store->store_all(chain);
    const Deadline past = std::chrono::steady_clock::now() - 1s;
    EXPECT_EQ(store->find(chain, past), Found(3));
    EXPECT_TRUE(store->load(chain, all_blocks(*chain), past).empty());
    EXPECT_TRUE(store->wait_until([](const StoreStats& stats) { return stats.up; }));
    EXPECT_EQ(store->find(chain), Found(3, Retention::kChat));
}

TEST_F(DirectoryStoreTest, ALoadEndsWithItsHandle) {
    const ChainPtr chain = make_chain("a", 100);
    TestStore store(folder.path());
    store->store_all(chain);
    testing::Signal first;
    std::size_t values = 0;
    std::unique_ptr<Load> handle;
    store.loop.call([&] {
        handle = store.store->load(
            chain, all_blocks(*chain), testing::soon(),
            [&](std::size_t, const kv::SharedBytes&) {
                ++values;
                handle.reset();  // From inside its own callback.
                first.set();
            },
            [] { FAIL() << "a cancelled load has no end"; });
    });
    EXPECT_TRUE(first.wait());
    EXPECT_EQ(store->find(chain).size(), 100U);  // What was being read has come by now.
    EXPECT_EQ(store.loop.call([&] { return values; }), 1U);
}

TEST_F(DirectoryStoreTest, AStoreThatEndsCallsNobody) {
    const ChainPtr chain = make_chain("a", 50);
    {
        TestStore(folder.path())->store_all(chain);
        TestStore store(folder.path(), {.disk_slow = 20ms});
        std::unique_ptr<Load> handle;
        store.loop.call([&] {
            const auto never = [](auto&&...) { FAIL(); };
            handle = store.store->load(chain, all_blocks(*chain), testing::soon(), never, never);
            store.store->find(chain, testing::soon(), never);
            store.store->store(chain, 0, kv::SharedBytes::own(value_of(*chain, 0)), never);
            store.store.reset();
        });
        store.loop.call([&] { handle.reset(); });
    }
}

TEST_F(DirectoryStoreTest, UseProlongsLifeAndWhatIsOverIsSweptAway) {
    kv::WallTime time = std::chrono::system_clock::now();  // Changes while there is no store.
    const auto now = [&time] { return time; };
    const ChainPtr chain = make_chain("a", 4, Retention::kAgent);
    {
        TestStore store(folder.path(), now);
        store->store_all(chain);
    }
    time += 70h;
    {
        TestStore store(folder.path(), now);
        store->touch(chain, blocks({0, 1}, Retention::kAgent));
        // Writes are done in order: this one is behind the touch.
        EXPECT_EQ(store->store(chain, 0, value_of(*chain, 0)), Stored::kWasThere);
    }
    time += 10h;
    TestStore store(folder.path(), now);
    EXPECT_EQ(store->find(chain),
              (Found{Retention::kAgent, Retention::kAgent, std::nullopt, std::nullopt}));
    const auto files = [&] {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
            if (entry.path().filename().string().starts_with("kv:")) ++count;
        return count;
    };
    EXPECT_TRUE(store->wait_until([&](const StoreStats&) { return files() == 2; }));
}

}  // namespace
}  // namespace sluice::kvnode
