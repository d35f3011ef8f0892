#pragma once

// Runs the real program, as a user's shell would.

#include <map>
#include <string>
#include <vector>

namespace sluice::app {

struct Outcome {
    int code = -1;  ///< -1 if it did not exit by itself.
    std::string out;
    std::string err;
};

/// `build/sluice ARGUMENTS...`; fails the test if it does not end within a minute.
[[nodiscard]] Outcome run_sluice(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment = {});

/// A file of the test's own, removed at the end of the scope.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& content);
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace sluice::app
