#pragma once

// A folder of a test's own, which ends with its scope.

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace sluice::kv::testing {

class Folder {
public:
    Folder() {
        std::string path = ::testing::TempDir() + "sluice-kv-XXXXXX";
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        path_ = path;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace sluice::kv::testing
