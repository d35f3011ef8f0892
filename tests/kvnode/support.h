#pragma once

// Chains of blocks, and a store on a loop of its own that is waited for from outside.

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kv/block_value.h"
#include "kvnode/block_store.h"
#include "tests/kv/folder.h"
#include "tests/net/support.h"

namespace sluice::kvnode::testing {

using net::testing::kPatience;
using net::testing::LoopThread;
using net::testing::Signal;

inline Deadline soon() { return std::chrono::steady_clock::now() + kPatience; }
inline Deadline after(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

/// Equal texts make equal chains.
inline ChainPtr make_chain(const std::string& text, std::size_t count,
                           kv::Retention retention = kv::Retention::kChat,
                           const std::string& tenant = "acme") {
    Chain chain{.tenant = tenant, .retention = retention, .keys = {}};
    for (std::size_t i = 0; i < count; ++i)
        chain.keys.push_back(sha256(text + "/" + std::to_string(i)));
    return std::make_shared<const Chain>(std::move(chain));
}

inline std::string value_of(const Chain& chain, std::size_t index,
                            std::string_view payload = "payload") {
    const kv::BlockHeader header{.key = chain.keys[index],
                                 .parent = index > 0 ? chain.keys[index - 1] : kv::BlockKey{},
                                 .component = "mla",
                                 .tokens = 64,
                                 .producer = sha256("producer"),
                                 .payload_checksum = {}};
    return kv::encode_block(header, payload.size(), [payload](std::span<std::byte> out) {
        std::memcpy(out.data(), payload.data(), payload.size());
    });
}

/// Blocks of a chain, all of one class.
inline std::vector<FoundBlock> blocks(std::vector<std::size_t> indexes,
                                      kv::Retention retention = kv::Retention::kChat) {
    std::vector<FoundBlock> found;
    for (const std::size_t index : indexes) found.push_back({index, retention});
    return found;
}

inline std::vector<FoundBlock> all_blocks(const Chain& chain,
                                          kv::Retention retention = kv::Retention::kChat) {
    std::vector<FoundBlock> found;
    for (std::size_t i = 0; i < chain.keys.size(); ++i) found.push_back({i, retention});
    return found;
}

using Found = std::vector<std::optional<kv::Retention>>;
using Values = std::map<std::size_t, std::string>;

/// Calls of a store, waited for.
class StoreCalls {
public:
    StoreCalls(LoopThread& loop, BlockStore& store) : loop_(loop), store_(store) {}

    Found find(const ChainPtr& chain, Deadline deadline = soon()) {
        Found result;
        Signal done;
        loop_.call([&] {
            store_.find(chain, deadline, [&](Found found) {
                result = std::move(found);
                done.set();
            });
            EXPECT_FALSE(done.is_set()) << "called from inside the call";
        });
        EXPECT_TRUE(done.wait());
        return result;
    }

    Values load(const ChainPtr& chain, const std::vector<FoundBlock>& wanted,
                Deadline deadline = soon()) {
        Values values;
        Signal done;
        std::unique_ptr<Load> handle;
        loop_.call([&] {
            handle = store_.load(
                chain, wanted, deadline,
                [&](std::size_t index, const kv::SharedBytes& value) {
                    EXPECT_FALSE(done.is_set());
                    EXPECT_TRUE(values.emplace(index, std::string(value.bytes)).second);
                },
                [&] { done.set(); });
            EXPECT_FALSE(done.is_set()) << "called from inside the call";
        });
        EXPECT_TRUE(done.wait());
        loop_.call([&] { handle.reset(); });
        return values;
    }

    Stored store(const ChainPtr& chain, std::size_t index, std::string value) {
        Stored result{};
        Signal done;
        loop_.call([&] {
            store_.store(chain, index, kv::SharedBytes::own(std::move(value)), [&](Stored stored) {
                result = stored;
                done.set();
            });
            EXPECT_FALSE(done.is_set()) << "called from inside the call";
        });
        EXPECT_TRUE(done.wait());
        return result;
    }

    /// Every block of the chain, with values that `value_of` makes.
    void store_all(const ChainPtr& chain, std::string_view payload = "payload") {
        for (std::size_t i = 0; i < chain->keys.size(); ++i)
            EXPECT_EQ(store(chain, i, value_of(*chain, i, payload)), Stored::kStored) << i;
    }

    void touch(const ChainPtr& chain, const std::vector<FoundBlock>& touched) {
        loop_.call([&] { store_.touch(chain, touched); });
    }

    /// All nodes together.
    StoreStats stats() {
        return loop_.call([&] {
            StoreStats sum;
            for (const StoreStats& one : store_.stats()) {
                sum.up |= one.up;
                sum.hits += one.hits;
                sum.misses += one.misses;
                sum.stored += one.stored;
                sum.bytes_read += one.bytes_read;
                sum.bytes_written += one.bytes_written;
                sum.pulled += one.pulled;
                sum.corrupt += one.corrupt;
                sum.differs += one.differs;
                sum.timeouts += one.timeouts;
                sum.errors += one.errors;
                sum.refused += one.refused;
            }
            return sum;
        });
    }

    /// Waits until what `stats` tells is as wanted.
    template <class Wanted>
    bool wait_until(Wanted wanted) {
        const Deadline end = soon();
        while (std::chrono::steady_clock::now() < end) {
            if (wanted(stats())) return true;
            std::this_thread::yield();
        }
        return false;
    }

private:
    LoopThread& loop_;
    BlockStore& store_;
};

}  // namespace sluice::kvnode::testing
