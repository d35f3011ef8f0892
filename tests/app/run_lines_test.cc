#include "app/run_lines.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/subprocess.h"

namespace sluice::app {
namespace {

UniqueFd file_with(const std::string& content) {
    UniqueFd file(::memfd_create("lines", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    ::lseek(file.get(), 0, SEEK_SET);
    return file;
}

TEST(LineReaderTest, GivesEachLineAndWhereTheNextOneStarts) {
    const UniqueFd file = file_with("ab\n\nc");
    LineReader lines(file.get());
    EXPECT_EQ(lines.next()->text, "ab");
    EXPECT_EQ(lines.offset(), 3U);
    const Line empty = *lines.next();
    EXPECT_EQ(empty.text, "");
    EXPECT_TRUE(empty.complete);
    const Line last = *lines.next();
    EXPECT_EQ(last.text, "c");
    EXPECT_FALSE(last.complete);
    EXPECT_EQ(lines.offset(), 5U);
    EXPECT_EQ(lines.next()->kind, LineKind::kEnd);
}

TEST(LineReaderTest, ALineLongerThanABlockIsWhole) {
    const std::string text(300'000, 'x');
    const UniqueFd file = file_with("a\n" + text + "\nb\n");
    LineReader lines(file.get());
    EXPECT_EQ(lines.next()->text, "a");
    EXPECT_EQ(lines.next()->text, text);
    EXPECT_EQ(lines.next()->text, "b");
    EXPECT_EQ(lines.next()->kind, LineKind::kEnd);
}

TEST(LineReaderTest, ALineBeyondTheBoundIsSkippedAndTheNextIsRead) {
    const std::string text(300'000, 'x');
    const UniqueFd file = file_with(text + "\nb\n" + text);
    LineReader lines(file.get(), 1000);
    EXPECT_EQ(lines.next()->kind, LineKind::kTooLong);
    EXPECT_EQ(lines.offset(), text.size() + 1);
    EXPECT_EQ(lines.next()->text, "b");
    EXPECT_EQ(lines.next()->kind, LineKind::kTooLong);
    EXPECT_EQ(lines.next()->kind, LineKind::kEnd);
}

TEST(LineReaderTest, IsReadyWhenNoOneHasToWriteFirst) {
    const auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    LineReader lines(pipe->read.get());
    EXPECT_FALSE(lines.ready());
    ASSERT_EQ(::write(pipe->write.get(), "a\nb\n", 4), 4);
    EXPECT_TRUE(lines.ready());
    EXPECT_EQ(lines.next()->text, "a");
    EXPECT_TRUE(lines.ready());
    EXPECT_EQ(lines.next()->text, "b");
    EXPECT_FALSE(lines.ready());
}

}  // namespace
}  // namespace sluice::app
