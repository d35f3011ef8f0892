#include "tests/app/run_sluice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/subprocess.h"
#include "tests/places.h"

namespace sluice::app {
namespace {

/// Whatever is in the file, from its start.
std::string contents(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) >
           0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

}  // namespace

Outcome run_sluice(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment) {
    // Files in memory and not pipes: nobody has to read while the program writes.
    const UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
    const UniqueFd err(::memfd_create("err", MFD_CLOEXEC));
    SpawnOptions options;
    options.argv = {std::string(kBinaryDir) + "/sluice"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.extra_environment = environment;
    options.fds = {{out.get(), 1}, {err.get(), 2}};
    auto child = Subprocess::spawn(options);
    if (!child) {
        ADD_FAILURE() << child.error().to_string();
        return {};
    }
    const auto ended = child->wait(std::chrono::minutes(1));
    EXPECT_TRUE(ended) << "still running after a minute";
    const bool exited = ended && ended->kind == ExitStatus::Kind::kExited;
    return {exited ? ended->value : -1, contents(out.get()), contents(err.get())};
}

TemporaryFile::TemporaryFile(const std::string& content)
    : path_(testing::TempDir() + "sluice-XXXXXX") {
    const UniqueFd file(::mkstemp(path_.data()));
    EXPECT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
}

TemporaryFile::~TemporaryFile() { ::unlink(path_.c_str()); }

}  // namespace sluice::app
