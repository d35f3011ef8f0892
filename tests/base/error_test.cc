#include "base/error.h"

#include <cerrno>

namespace sluice {
namespace {

TEST(ErrorTest, OutOfRangeNamesBothNumbers) {
    const Error error = Error::out_of_range("worker", 7, 2);
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(error.message(), "worker is 7, but must be below 2");
}

TEST(ErrorTest, WithinBuildsAPathFromTheInsideOut) {
    const Error error = Error::invalid("must be a string", "content");
    EXPECT_EQ(error.within("[3]").within("messages").place(), "messages[3].content");
    EXPECT_EQ(error.to_string(), "content: must be a string");
}

TEST(ErrorTest, IoCarriesTheSystemsOwnText) {
    EXPECT_EQ(Error::io("open model.gguf", ENOENT).message(),
              "open model.gguf: No such file or directory");
}

}  // namespace
}  // namespace sluice
