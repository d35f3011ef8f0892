// What a start finds in files that a crash, a bad disk or somebody else left behind.

#include "kv/ssd_recovery.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "ssd_support.h"

namespace sluice::kv {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class SsdRecoveryTest : public SsdTierTest {
protected:
    SsdRecoveryTest() : SsdTierTest(Place::kMemory) {}

    static constexpr int kEntries = 12;

    static std::string name(int i) { return "n" + std::to_string(i); }
    static std::string value(int i) { return value_of(i, 3000 + 1000 * (i % 4)); }

    void fill() {
        for (int i = 0; i < kEntries; ++i) ASSERT_TRUE(put(name(i), value(i)));
        ASSERT_TRUE(sync());
    }
    /// Files as a crash now would leave them, by name.
    [[nodiscard]] std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> files;
        for (const auto& file : fs::directory_iterator(folder_.path()))
            files[file.path().filename().string()] = read_file(file.path());
        return files;
    }
    void restore(const std::map<std::string, std::string>& files) {
        tier_.reset();
        for (const auto& file : fs::directory_iterator(folder_.path())) fs::remove(file.path());
        for (const auto& [name, bytes] : files) write_file(folder_.path() + "/" + name, bytes);
    }
    /// Opens, and says how many entries there are; none may be wrong.
    int found() {
        open();
        int found = 0;
        for (int i = 0; i < kEntries; ++i) {
            const auto got = fetch(name(i));
            if (!got) continue;
            EXPECT_EQ(got->bytes, value(i)) << i;
            ++found;
        }
        return found;
    }
    static std::string segment_of(const std::map<std::string, std::string>& files) {
        for (const auto& [name, bytes] : files)
            if (name.ends_with(".segment")) return name;
        return {};
    }
};

TEST_F(SsdRecoveryTest, ATornSegmentIsSearchedCutAndGetsItsFooter) {
    open();
    fill();
    const auto crashed = files();
    restore(crashed);
    EXPECT_EQ(found(), kEntries);
    EXPECT_EQ(tier_->stats().torn_segments, 1U);
    EXPECT_EQ(found(), kEntries);
    EXPECT_EQ(tier_->stats().torn_segments, 0U);
}

TEST_F(SsdRecoveryTest, WhereverTheTailIsTornWhatStandsBeforeIsFound) {
    open();
    fill();
    auto crashed = files();
    const std::string segment = segment_of(crashed);
    const std::string whole = crashed[segment];
    std::uint64_t end = kSsdSectorBytes;
    for (int i = 0; i < kEntries; ++i) {
        const std::uint64_t begin = end;
        end += ssd_entry_bytes(name(i).size(), value(i).size());
        for (const std::uint64_t cut : {begin, begin + 1, begin + 4095, end - 1}) {
            crashed[segment] = whole.substr(0, cut);
            restore(crashed);
            ASSERT_EQ(found(), i) << cut;
            ASSERT_TRUE(put("next", "fits"));
            ASSERT_TRUE(sync());
            ASSERT_EQ(get("next"), "fits");
            ASSERT_TRUE(tier_->erase("next"));
        }
    }
    EXPECT_EQ(end, whole.size());
}

TEST_F(SsdRecoveryTest, AFileThatWasOnlyBegunIsRemoved) {
    open();
    fill();
    auto crashed = files();
    crashed["0000000000000077.segment"] = "";
    crashed["0000000000000078.lives"] = "lives without a segment";
    restore(crashed);
    EXPECT_EQ(found(), kEntries);
    EXPECT_FALSE(fs::exists(folder_.path() + "/0000000000000077.segment"));
    EXPECT_FALSE(fs::exists(folder_.path() + "/0000000000000078.lives"));
}

TEST_F(SsdRecoveryTest, ADamagedSectorCostsItsEntryAndNoOther) {
    open();
    fill();
    auto crashed = files();
    const std::string segment = segment_of(crashed);
    const std::string whole = crashed[segment];
    for (std::uint64_t at = kSsdSectorBytes + 70; at < whole.size(); at += kSsdSectorBytes) {
        crashed[segment] = whole;
        crashed[segment][at] = static_cast<char>(crashed[segment][at] ^ 1);
        restore(crashed);
        EXPECT_GE(found(), kEntries - 1) << at;
    }
}

TEST_F(SsdRecoveryTest, ADamagedFooterIsDoneWithoutAndStaysAsItIs) {
    open();
    fill();
    tier_.reset();
    auto sealed = files();
    const std::string segment = segment_of(sealed);
    const std::string whole = sealed[segment];
    for (const std::uint64_t back :
         {kSsdSectorBytes - 12, kSsdSectorBytes - 60, 2 * kSsdSectorBytes}) {
        sealed[segment] = whole;
        char& byte = sealed[segment][whole.size() - back];
        byte = static_cast<char>(byte ^ 1);
        restore(sealed);
        EXPECT_EQ(found(), kEntries);
        EXPECT_EQ(tier_->stats().torn_segments, 1U);
        tier_.reset();
        EXPECT_EQ(files()[segment], sealed[segment]);
    }
}

TEST_F(SsdRecoveryTest, AnotherFormatsSegmentIsLeftAsItIs) {
    open();
    fill();
    tier_.reset();
    auto newer = files();
    const std::string segment = segment_of(newer);
    newer[segment][8] = 2;
    restore(newer);
    EXPECT_EQ(found(), 0);
    EXPECT_EQ(tier_->stats().ignored_segments, 1U);
    ASSERT_TRUE(put("own", "value"));
    ASSERT_TRUE(sync());
    tier_.reset();
    EXPECT_EQ(files()[segment], newer[segment]);
}

TEST_F(SsdRecoveryTest, ASegmentUnderAnotherNameIsIgnored) {
    open();
    fill();
    tier_.reset();
    auto moved = files();
    const std::string segment = segment_of(moved);
    moved["00000000000000aa.segment"] = moved[segment];  // A copy, beside the original.
    restore(moved);
    EXPECT_EQ(found(), kEntries);
    EXPECT_EQ(tier_->stats().ignored_segments, 1U);
}

TEST_F(SsdRecoveryTest, DamagedLivesEndWhatTheyBelongTo) {
    open();
    fill();
    ASSERT_TRUE(tier_->erase(name(0)));
    ASSERT_TRUE(tier_->expire(name(1), now() + std::chrono::hours(1)));
    ASSERT_TRUE(sync());
    tier_.reset();
    auto damaged = files();
    for (auto& [file, bytes] : damaged)
        if (file.ends_with(".lives"))
            for (std::size_t at = 3; at < bytes.size(); at += kSsdLifeBytes) bytes[at] = 'x';
    restore(damaged);
    EXPECT_EQ(found(), kEntries - 2);  // Rather none than one that was erased.
    EXPECT_EQ(get(name(1)), "<not_found>");
}

TEST_F(SsdRecoveryTest, AValueThatLooksLikeEntriesIsNotTakenForOne) {
    // What a client could write if it knew the format and one nonce too few.
    const std::string forged_value = "forged";
    std::string forged =
        encode_entry_header({.nonce = 0,
                             .sequence = UINT64_MAX,
                             .slot = 9,
                             .value_bytes = forged_value.size(),
                             .value_checksum = xxh3_128(std::as_bytes(std::span(forged_value))),
                             .name = "kv:victim"});
    forged += forged_value;
    forged.resize(kSsdSectorBytes);
    const std::size_t to_sector = kSsdSectorBytes - ssd_value_offset(7);
    std::string hostile(to_sector, 'x');
    for (int i = 0; i < 3; ++i) hostile += forged;

    open();
    ASSERT_TRUE(put("hostile", hostile));
    ASSERT_TRUE(sync());
    auto crashed = files();
    const std::string segment = segment_of(crashed);
    ASSERT_EQ(crashed[segment].substr(2 * kSsdSectorBytes, 4), "SLE1");
    crashed[segment][kSsdSectorBytes] = 'x';  // The entry around them is damaged.
    restore(crashed);
    open();
    EXPECT_EQ(get("kv:victim"), "<not_found>");
    EXPECT_EQ(tier_->stats().entries, 0U);
}

TEST_F(SsdRecoveryTest, ALowerLimitHoldsAfterTheStart) {
    open();
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(put(name(i), value_of(i, 100'000)));
    ASSERT_TRUE(sync());
    SsdOptions smaller = options();
    smaller.bytes = 10 * kSegment;
    open(smaller);
    EXPECT_TRUE(eventually([&] { return tier_->stats().bytes <= smaller.bytes; }));
    EXPECT_LE(folder_.bytes_on_disk(), smaller.bytes);
    EXPECT_GT(tier_->stats().entries, 50U);
}

}  // namespace
}  // namespace sluice::kv
