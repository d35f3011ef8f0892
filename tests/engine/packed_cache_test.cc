#include "engine/packed_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "checkpoint/fingerprint.h"
#include "engine/model.h"
#include "tests/support/tiny_model.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using Loaded = std::shared_ptr<const Model>;

std::vector<char> read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::span<const char> bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A tiny model in a folder of its own, which is not the user's.
class PackedCacheTest : public testing::Test {
protected:
    PackedCacheTest() : folder_(testing::TempDir() + "packed-XXXXXX") {
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
        write_model(1);
        path_ = fs::canonical(folder_) / "tiny.gguf.packed-1";
    }
    ~PackedCacheTest() override { fs::remove_all(folder_); }

    void write_model(std::uint64_t seed) {
        const auto bytes =
            test::random_model(test::tiny_hyper_parameters(), checkpoint::DataType::kQ8_0, seed);
        write_file(model_path(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    [[nodiscard]] fs::path model_path() const { return fs::path(folder_) / "tiny.gguf"; }

    [[nodiscard]] Loaded load(PackedOptions options) const {
        auto model = Model::load(model_path(), std::move(options));
        EXPECT_TRUE(model.has_value()) << model.error().to_string();
        return model ? *model : nullptr;
    }
    [[nodiscard]] Loaded load(PackedUse use) const { return load(PackedOptions{.use = use}); }

    /// The weights are the model's, wherever they are.
    void expect_right(const Loaded& model) const {
        const Loaded truth = load(PackedUse::kOff);
        ASSERT_EQ(model->weights().bytes, truth->weights().bytes);
        EXPECT_TRUE(std::equal(truth->weights().data(),
                               truth->weights().data() + truth->weights().bytes,
                               model->weights().data()));
        EXPECT_EQ(model->fingerprint(), truth->fingerprint());
    }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    std::string folder_;
    fs::path path_;  ///< Of the packed weights.
};

TEST_F(PackedCacheTest, TheSecondLoadMapsWhatTheFirstOneWrote) {
    const Loaded first = load(PackedUse::kRefresh);
    EXPECT_TRUE(first->weights().is_new);
    EXPECT_EQ(first->weights().path, path_);
    expect_right(first);
    const auto written = fs::last_write_time(path_);

    const Loaded second = load(PackedUse::kAuto);
    EXPECT_FALSE(second->weights().is_new);
    EXPECT_EQ(second->weights().path, path_);
    expect_right(second);
    EXPECT_EQ(fs::last_write_time(path_), written);
    EXPECT_EQ(files(), 2U);
}

TEST_F(PackedCacheTest, ASmallModelIsPackedInMemoryAndOffMeansOff) {
    EXPECT_TRUE(load(PackedUse::kAuto)->weights().path.empty());
    EXPECT_EQ(files(), 1U);
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    EXPECT_TRUE(load(PackedUse::kOff)->weights().path.empty());
}

TEST_F(PackedCacheTest, ALargeModelGetsAFileWithoutBeingAsked) {
    const Loaded model = load({.use = PackedUse::kAuto, .least_bytes = 1});
    EXPECT_EQ(model->weights().path, path_);
}

TEST_F(PackedCacheTest, DamageAnywhereIsFoundAndBuiltAgain) {
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    const std::vector<char> good = read_file(path_);
    for (std::size_t at = 0; at < good.size(); at += at + 300 < good.size() ? 1999 : 7) {
        std::vector<char> bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        fs::remove(path_);
        write_file(path_, bad);
        const Loaded model = load({.use = PackedUse::kAuto, .least_bytes = 1});
        ASSERT_TRUE(model->weights().is_new) << "a flipped bit at " << at << " was not found";
    }
    expect_right(load(PackedUse::kAuto));
}

TEST_F(PackedCacheTest, AFileCutShortIsBuiltAgain) {
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    const std::vector<char> good = read_file(path_);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{151}, good.size() / 2, good.size() - 1}) {
        fs::remove(path_);
        write_file(path_, std::span(good).first(size));
        const Loaded model = load(PackedUse::kRefresh);
        EXPECT_TRUE(model->weights().is_new) << size << " bytes";
        expect_right(model);
    }
}

TEST_F(PackedCacheTest, TheFileOfOtherWeightsIsNotUsed) {
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    write_model(2);  // The same shapes.
    const Loaded model = load({.use = PackedUse::kAuto, .least_bytes = 1});
    EXPECT_TRUE(model->weights().is_new);
    expect_right(model);
}

TEST_F(PackedCacheTest, AFileOfAnotherPackingIsNotUsed) {
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    std::vector<char> file = read_file(path_);
    constexpr std::size_t kFooter = 152;
    ++file[file.size() - kFooter + 12];
    write_file(path_, file);
    const auto opened = PackedFile::open(path_);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code(), ErrorCode::kUnsupported);
    EXPECT_TRUE(load(PackedUse::kRefresh)->weights().is_new);
}

// Checked by a file that lies: with the stamp of the checkpoint, its fingerprint is believed.
TEST_F(PackedCacheTest, AnUntouchedCheckpointIsNotReadAgain) {
    const auto checkpoint = checkpoint::GgufFile::open(model_path());
    ASSERT_TRUE(checkpoint.has_value());
    ASSERT_NE(load(PackedUse::kRefresh), nullptr);
    PackedIdentity identity = PackedFile::open(path_)->identity();
    identity.stamp = checkpoint->stamp();
    identity.fingerprint = std::string(64, 'a');
    const WeightPlan plan = *plan_weights(*checkpoint);
    ThreadTeam team(1);
    {
        const UniqueFd file(::open(path_.c_str(), O_RDWR));
        ASSERT_TRUE(PackedFile::write(file.get(), plan, identity, team, {}).has_value());
    }
    EXPECT_EQ(load(PackedUse::kAuto)->fingerprint(), identity.fingerprint);

    write_model(1);  // The same bytes at another time.
    const Loaded touched = load(PackedUse::kRefresh);
    EXPECT_TRUE(touched->weights().is_new);
    EXPECT_EQ(touched->fingerprint(), checkpoint::fingerprint(*checkpoint));
}

TEST_F(PackedCacheTest, AFileThatHasJustChangedHasNoStamp) {
    const auto checkpoint = checkpoint::GgufFile::open(model_path());
    ASSERT_TRUE(checkpoint.has_value());
    checkpoint::FileStamp stamp = checkpoint->stamp();
    constexpr std::int64_t kHour = 3'600'000'000'000;
    stamp.changed_ns += kHour;
    EXPECT_FALSE(static_cast<bool>(stamp.if_settled()));
    stamp.changed_ns -= 2 * kHour;
    EXPECT_EQ(stamp.if_settled(), stamp);
}

TEST_F(PackedCacheTest, WithoutASpaceBesideTheModelTheSecondPlaceIsTaken) {
    fs::create_directory(path_.string() + ".tmp");
    const fs::path fallback = fs::path(folder_) / "cache" / "sluice";
    PackedOptions options{.use = PackedUse::kRefresh, .fallback = fallback};
    const Loaded model = load(options);
    EXPECT_EQ(model->weights().path.parent_path(), fallback);
    expect_right(model);
    options.use = PackedUse::kAuto;
    EXPECT_EQ(load(options)->weights().path, model->weights().path);
}

TEST_F(PackedCacheTest, WithoutAnyPlaceWeightsAreInMemoryAndARefreshFails) {
    PackedOptions options{.use = PackedUse::kAuto, .folder = model_path() / "no", .least_bytes = 1};
    EXPECT_TRUE(load(options)->weights().path.empty());
    expect_right(load(options));
    options.use = PackedUse::kRefresh;
    const auto refreshed = Model::load(model_path(), options);
    ASSERT_FALSE(refreshed.has_value());
    EXPECT_EQ(refreshed.error().code(), ErrorCode::kIo);
}

TEST_F(PackedCacheTest, AFullDiskLeavesNothingBehind) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit full{.rlim_cur = 4096, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    const Loaded model = load({.use = PackedUse::kAuto, .least_bytes = 1});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(model->weights().path.empty());
    expect_right(model);
    EXPECT_EQ(files(), 1U);
}

TEST_F(PackedCacheTest, ProcessesThatStartTogetherPackOnce) {
    std::array<Loaded, 6> models;
    {
        std::vector<std::jthread> threads;
        for (Loaded& model : models) {
            threads.emplace_back(
                [&] { model = load({.use = PackedUse::kAuto, .least_bytes = 1}); });
        }
    }
    EXPECT_EQ(
        std::ranges::count_if(models, [](const Loaded& model) { return model->weights().is_new; }),
        1);
    for (const Loaded& model : models) expect_right(model);
    EXPECT_EQ(files(), 2U);
}

TEST_F(PackedCacheTest, WhatAKilledWriterLeftIsWrittenOver) {
    write_file(path_.string() + ".tmp", std::vector<char>(1 << 20, 'x'));
    expect_right(load(PackedUse::kRefresh));
    EXPECT_FALSE(load(PackedUse::kAuto)->weights().is_new);
    EXPECT_EQ(files(), 2U);
}

TEST(PackedOptionsTest, TheEnvironmentSaysWhere) {
    ::unsetenv("SLUICE_PACKED");
    ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
    EXPECT_EQ(PackedOptions::from_environment().use, PackedUse::kAuto);
    EXPECT_EQ(PackedOptions::from_environment().fallback, "/somewhere/sluice");
    ::setenv("SLUICE_PACKED", "off", 1);
    EXPECT_EQ(PackedOptions::from_environment().use, PackedUse::kOff);
    ::setenv("SLUICE_PACKED", "/models/packed", 1);
    EXPECT_EQ(PackedOptions::from_environment().folder, "/models/packed");
    ::unsetenv("SLUICE_PACKED");
    ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace sluice::engine
