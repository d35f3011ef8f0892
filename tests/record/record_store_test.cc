#include "record/record_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <set>

#include "tests/record/support.h"

namespace sluice::record {
namespace {

constexpr std::chrono::minutes kPatience{2};

RecordStoreOptions options_in(const std::string& folder) {
    return {.folder = folder,
            .batch_delay = std::chrono::milliseconds(1),
            .retry_pause = std::chrono::milliseconds(5),
            .journal_bytes = 1 << 16,
            .wall_clock_ms = [] { return std::int64_t{1'800'000'000'000}; }};
}

std::unique_ptr<RecordStore> open_store(const RecordStoreOptions& options) {
    auto store = RecordStore::open(options);
    EXPECT_TRUE(store.has_value()) << store.error().to_string();
    return store ? std::move(*store) : nullptr;
}

std::set<std::string> rids(const std::string& folder) {
    std::set<std::string> all;
    for (const ReadRow& each : read_all(folder)) {
        EXPECT_TRUE(all.insert(each.row.rid).second) << each.row.rid << " is there twice";
    }
    return all;
}

TEST(RecordStoreTest, WhatIsAddedCanBeReadBack) {
    const TemporaryFolder folder;
    const auto store = open_store(options_in(folder.path()));
    const RequestRow good = example_row("good");
    const RequestRow bad = example_row("bad", Outcome::kWorkerLost);
    store->add(good);
    store->add(bad);
    ASSERT_TRUE(store->flush(kPatience));
    const auto rows = read_all(folder.path());
    ASSERT_EQ(rows.size(), 2U);
    for (const ReadRow& each : rows) EXPECT_EQ(each.row, each.row.rid == "good" ? good : bad);
    const RecordStats stats = store->stats();
    EXPECT_EQ(stats.added, 2U);
    EXPECT_EQ(stats.written, 2U);
    EXPECT_EQ(stats.journal_bytes, 0U);
}

TEST(RecordStoreTest, ItsEndWritesWhatWaits) {
    const TemporaryFolder folder;
    auto options = options_in(folder.path());
    options.batch_delay = std::chrono::hours(1);
    {
        const auto store = open_store(options);
        for (int i = 0; i < 100; ++i)
            store->add(example_row(std::to_string(i), i % 2 == 0 ? Outcome::kOk : Outcome::kError));
    }
    EXPECT_EQ(rids(folder.path()).size(), 100U);
}

// The child is killed while it writes, over and over; it tells through a pipe which failures add()
// has taken. Every one of them must be there in the end, once.
TEST(RecordStoreTest, AKilledProcessLosesNoFailure) {
    const TemporaryFolder folder;
    std::set<std::string> acknowledged;
    for (int round = 0; round < 12; ++round) {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(ends[0]);
            auto options = options_in(folder.path());
            options.batch_delay = std::chrono::milliseconds(0);
            options.journal_bytes = 1 << 20;
            auto store = RecordStore::open(options);
            if (!store) ::_exit(1);
            for (int i = 0;; ++i) {
                const std::string rid = std::to_string(round) + "-" + std::to_string(i);
                (*store)->add(example_row(rid, Outcome::kWorkerLost));
                (*store)->add(example_row("ok-" + rid));
                // The ring has room for a thousand; the writer is what is being killed.
                if (i % 64 == 0) (void)(*store)->flush(kPatience);
                if (::write(ends[1], (rid + "\n").data(), rid.size() + 1) < 0) ::_exit(2);
            }
        }
        ::close(ends[1]);
        std::string told;
        char buffer[4096];
        const std::size_t enough = 200U + 350U * static_cast<std::size_t>(round);
        while (told.size() < enough) {
            const ssize_t size = ::read(ends[0], buffer, sizeof(buffer));
            ASSERT_GT(size, 0) << "the child ended by itself";
            told.append(buffer, static_cast<std::size_t>(size));
        }
        ::kill(child, SIGKILL);
        ssize_t size = 0;
        while ((size = ::read(ends[0], buffer, sizeof(buffer))) > 0)
            told.append(buffer, static_cast<std::size_t>(size));
        ::close(ends[0]);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        for (std::size_t at = 0; at < told.size();) {
            const std::size_t end = told.find('\n', at);
            if (end == std::string::npos) break;
            acknowledged.insert(told.substr(at, end - at));
            at = end + 1;
        }
    }
    {
        const auto store = open_store(options_in(folder.path()));
        ASSERT_TRUE(store->flush(kPatience));
    }
    const std::set<std::string> found = rids(folder.path());
    EXPECT_GT(acknowledged.size(), 500U);
    for (const std::string& rid : acknowledged)
        EXPECT_TRUE(found.contains(rid)) << rid << " is lost";
}

// In a child, because the limit on file sizes holds for a whole process. It stands for a full disk:
// SQLite sees the same refusal of its writes.
int fill_disk_and_recover(const std::string& folder) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto options = options_in(folder);
    auto store = RecordStore::open(options);
    if (!store) return 1;
    (*store)->add(example_row("before", Outcome::kError));
    if (!(*store)->flush(kPatience)) return 2;
    const rlimit tight{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &tight) != 0) return 3;
    for (int i = 0; i < 100; ++i)
        (*store)->add(example_row("during-" + std::to_string(i), Outcome::kError));
    for (int i = 0; i < 100; ++i) (*store)->add(example_row("fine-" + std::to_string(i)));
    while ((*store)->stats().write_errors < 3) ::usleep(1'000);
    if ((*store)->stats().written != 1) return 4;
    const rlimit wide{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &wide) != 0) return 5;
    if (!(*store)->flush(kPatience)) return 6;
    const RecordStats stats = (*store)->stats();
    return stats.written == 201 && stats.joined_failures == 0 && stats.set_aside == 0 ? 0 : 7;
}

TEST(RecordStoreTest, AFullDiskIsWaitedOut) {
    const TemporaryFolder folder;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(fill_disk_and_recover(folder.path()));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(rids(folder.path()).size(), 201U);
}

/// Holds the database as another program would, so that nothing can be written.
class Blocker {
public:
    explicit Blocker(const std::string& path)
        : database_(std::move(*Sqlite::open(path, Sqlite::Access::kReadWrite))) {
        EXPECT_TRUE(database_.execute("BEGIN IMMEDIATE").has_value());
    }
    void release() { EXPECT_TRUE(database_.execute("ROLLBACK").has_value()); }

private:
    Sqlite database_;
};

TEST(RecordStoreTest, UnderPressureCountsStayExactAndFailuresAreKept) {
    const TemporaryFolder folder;
    auto options = options_in(folder.path());
    options.queue_rows = 50;
    options.journal_bytes = 1 << 20;
    const auto store = open_store(options);
    ASSERT_TRUE(store->flush(kPatience));
    Blocker blocker(store->database_path());
    for (int i = 0; i < 2'000; ++i) store->add(example_row("ok" + std::to_string(i)));
    for (int i = 0; i < 500; ++i)
        store->add(example_row("bad" + std::to_string(i), Outcome::kTimeoutDecode));
    EXPECT_GT(store->stats().joined_successes, 1'000U);
    EXPECT_EQ(store->stats().joined_failures, 0U);
    EXPECT_LE(store->stats().waiting, 51U);
    blocker.release();
    ASSERT_TRUE(store->flush(kPatience));
    std::map<Outcome, std::uint64_t> counts;
    std::uint64_t failures = 0;
    for (const ReadRow& each : read_all(folder.path())) {
        counts[each.row.outcome] += each.row.weight;
        failures += is_failure(each.row.outcome) ? 1 : 0;
    }
    EXPECT_EQ(counts[Outcome::kOk], 2'000U);
    EXPECT_EQ(counts[Outcome::kTimeoutDecode], 500U);
    EXPECT_EQ(failures, 500U);
}

TEST(RecordStoreTest, BeyondTheRingFailuresWaitInMemoryAndThenStillCount) {
    const TemporaryFolder folder;
    auto options = options_in(folder.path());
    options.queue_rows = 20;
    options.journal_bytes = 8'192;
    const auto store = open_store(options);
    ASSERT_TRUE(store->flush(kPatience));
    Blocker blocker(store->database_path());
    for (int i = 0; i < 300; ++i) store->add(example_row(std::to_string(i), Outcome::kWorkerLost));
    EXPECT_GT(store->stats().joined_failures, 0U);
    blocker.release();
    ASSERT_TRUE(store->flush(kPatience));
    std::uint64_t counted = 0;
    for (const ReadRow& each : read_all(folder.path())) counted += each.row.weight;
    EXPECT_EQ(counted, 300U);
}

void damage(const std::string& path, std::streamoff from, std::size_t size) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(from);
    file << std::string(size, '\x55');
    ASSERT_TRUE(file.good());
}

TEST(RecordStoreTest, ADamagedDatabaseIsSetAsideAndANewOneBegun) {
    const TemporaryFolder folder;
    {
        const auto store = open_store(options_in(folder.path()));
        store->add(example_row("old", Outcome::kError));
    }
    damage(folder.file("records.db"), 0, 4096);
    const auto store = open_store(options_in(folder.path()));
    store->add(example_row("new", Outcome::kError));
    ASSERT_TRUE(store->flush(kPatience));
    EXPECT_EQ(store->stats().set_aside, 1U);
    EXPECT_EQ(rids(folder.path()), std::set<std::string>{"new"});
    EXPECT_TRUE(std::filesystem::exists(folder.file("records.db.corrupt")));
}

TEST(RecordStoreTest, DamageFoundWhileWritingLosesNoRow) {
    const TemporaryFolder folder;
    {
        const auto store = open_store(options_in(folder.path()));
        for (int i = 0; i < 500; ++i) store->add(example_row("old" + std::to_string(i)));
    }
    // All but the first page, which holds the header and the schema.
    const auto size = std::filesystem::file_size(folder.file("records.db"));
    damage(folder.file("records.db"), 4096, size - 4096);
    const auto store = open_store(options_in(folder.path()));
    store->set_price("stable", 2.0);
    for (int i = 0; i < 50; ++i)
        store->add(
            example_row("new" + std::to_string(i), i % 2 == 0 ? Outcome::kOk : Outcome::kError));
    ASSERT_TRUE(store->flush(kPatience));
    EXPECT_EQ(store->stats().set_aside, 1U);
    EXPECT_EQ(rids(folder.path()).size(), 50U);
    auto reader = *RecordReader::open(folder.path());
    const auto bills = reader.bills({}, 1'800'003'600'000);
    ASSERT_TRUE(bills.has_value());
    EXPECT_DOUBLE_EQ(bills->at("stable").bill, 2.0);
}

TEST(RecordStoreTest, AClockThatStepsBackReordersNothingAndStallsNothing) {
    const TemporaryFolder folder;
    std::atomic<std::int64_t> now{1'800'000'000'000};
    auto options = options_in(folder.path());
    options.retention_age = std::chrono::hours(1);
    options.wall_clock_ms = [&now] { return now.load(); };
    const auto store = open_store(options);
    for (int i = 0; i < 10; ++i) {
        RequestRow row = example_row(std::to_string(i), Outcome::kError);
        row.time_ms = now;
        store->add(row);
        ASSERT_TRUE(store->flush(kPatience));
        now -= 600'000;  // Ten minutes back with each row.
    }
    const auto rows = read_all(folder.path());
    ASSERT_EQ(rows.size(), 10U);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(rows[i].row.rid, std::to_string(i));
}

TEST(RecordStoreTest, OldRowsGoByAge) {
    const TemporaryFolder folder;
    auto options = options_in(folder.path());
    options.retention_age = std::chrono::hours(1);
    {
        const auto store = open_store(options_in(folder.path()));
        for (const auto& [rid, age_ms] : {std::pair{"old", 3'600'001}, {"young", 3'599'999}}) {
            RequestRow row = example_row(rid, Outcome::kError);
            row.time_ms = 1'800'000'000'000 - age_ms;
            store->add(row);
        }
    }
    {
        const auto store = open_store(options);
    }  // Retention runs when it starts.
    EXPECT_EQ(rids(folder.path()), std::set<std::string>{"young"});
}

TEST(RecordStoreTest, TheOldestRowsGoBySize) {
    const TemporaryFolder folder;
    {
        const auto store = open_store(options_in(folder.path()));
        for (int i = 0; i < 12'000; ++i) {
            store->add(example_row(std::to_string(i)));
            if (i % 4'000 == 3'999) {
                ASSERT_TRUE(store->flush(kPatience));
            }
        }
    }
    const auto before = std::filesystem::file_size(folder.file("records.db"));
    auto database = RecordDatabase::open(folder.file("records.db"));
    ASSERT_TRUE(database.has_value());
    const std::uint64_t bytes = before / 2;
    while (true) {
        const auto more = database->retain(0, bytes);
        ASSERT_TRUE(more.has_value()) << more.error().to_string();
        if (!*more) break;
    }
    EXPECT_LE(*database->used_bytes(), bytes);
    const auto kept = rids(folder.path());
    EXPECT_GT(kept.size(), 100U);
    EXPECT_TRUE(kept.contains("11999"));
    EXPECT_FALSE(kept.contains("0"));
}

TEST(RecordStoreTest, AnOlderSchemaIsBroughtUpToDateWithItsRows) {
    const TemporaryFolder folder;
    {
        const auto store = open_store(options_in(folder.path()));
        store->add(example_row("kept"));
    }
    {
        auto database = *Sqlite::open(folder.file("records.db"), Sqlite::Access::kReadWrite);
        ASSERT_TRUE(database.execute("DROP VIEW requests; PRAGMA user_version = 1").has_value());
    }
    {
        const auto store = open_store(options_in(folder.path()));
    }
    auto database = *Sqlite::open(folder.file("records.db"), Sqlite::Access::kRead);
    EXPECT_EQ(database.integer("PRAGMA user_version"), 2);
    EXPECT_EQ(database.integer("SELECT prompt_tokens FROM requests WHERE rid = 'kept'"), 20'000);
}

TEST(RecordStoreTest, ANewerSchemaIsRefusedAndLeftAlone) {
    const TemporaryFolder folder;
    {
        const auto store = open_store(options_in(folder.path()));
    }
    {
        auto database = *Sqlite::open(folder.file("records.db"), Sqlite::Access::kReadWrite);
        ASSERT_TRUE(database.execute("PRAGMA user_version = 99").has_value());
    }
    const auto store = RecordStore::open(options_in(folder.path()));
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code(), ErrorCode::kUnsupported);
    EXPECT_NE(store.error().message().find("99"), std::string::npos);
}

TEST(RecordStoreTest, AFolderThatCannotBeMadeIsToldAtTheStart) {
    const TemporaryFolder folder;
    std::ofstream(folder.file("file")) << "x";
    const auto store = RecordStore::open(options_in(folder.file("file") + "/below"));
    ASSERT_FALSE(store.has_value());
    EXPECT_NE(store.error().place().find("file/below"), std::string::npos);
}

TEST(RecordStoreTest, AManifestIsKnownByItsDigest) {
    const TemporaryFolder folder;
    const VersionManifest manifest{.engine = "native", .engine_version = "0.1.0"};
    const std::string fingerprint = digest(manifest);
    const auto store = open_store(options_in(folder.path()));
    store->remember(fingerprint, manifest);
    store->remember(fingerprint, manifest);
    ASSERT_TRUE(store->flush(kPatience));
    auto reader = *RecordReader::open(folder.path());
    EXPECT_EQ(*reader.manifest(fingerprint), manifest);
    EXPECT_EQ(*reader.manifest("fp_none"), std::nullopt);
    EXPECT_EQ(reader.manifests()->size(), 1U);
}

}  // namespace
}  // namespace sluice::record
