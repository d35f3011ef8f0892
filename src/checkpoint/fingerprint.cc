#include "checkpoint/fingerprint.h"

#include <algorithm>

#include "base/hash.h"

namespace sluice::checkpoint {
namespace {

void add_data(Sha256& hash, std::span<const std::byte> data) {
    const Xxh128 digest = xxh3_128(data);
    hash.update_u64(data.size()).update_u64(digest.low).update_u64(digest.high);
}

}  // namespace

std::string fingerprint(const GgufFile& file) {
    Sha256 hash;
    hash.update("sluice checkpoint fingerprint 1\n");
    hash.update_u64(file.header().size()).update(file.header());
    for (const TensorView& tensor : file.tensors()) add_data(hash, tensor.data);

    // Where a tensor's size isn't known, all that may belong to it counts.
    const bool sizes_known = std::ranges::none_of(
        file.tensors(), [](const TensorView& tensor) { return tensor.data.empty(); });
    if (!sizes_known) add_data(hash, file.bytes().subspan(file.header().size()));
    return to_hex(hash.finish());
}

}  // namespace sluice::checkpoint
