// Any bytes: open them as packed weights, and check the payload of those that pass.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "engine/packed_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const sluice::UniqueFd memory(::memfd_create("packed", MFD_CLOEXEC));
    if (::write(memory.get(), data, size) != static_cast<ssize_t>(size)) return 0;
    const auto file =
        sluice::engine::PackedFile::open("/proc/self/fd/" + std::to_string(memory.get()));
    if (!file) return 0;
    sluice::ThreadTeam team(1);
    (void)file->verify(team);
    return 0;
}
