#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sluice::app {

/// A folder of the test's own, removed with all that is in it at the end of the scope.
class TemporaryFolder {
public:
    TemporaryFolder() : path_(testing::TempDir() + "sluice-XXXXXX") {
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace sluice::app
