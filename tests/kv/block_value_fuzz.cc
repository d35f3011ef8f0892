// Any bytes as a block's value; what is accepted must be what the encoder makes of it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/assert.h"
#include "kv/block_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto whole = sluice::kv::block_value_bytes(bytes);
    static_cast<void>(sluice::kv::read_block_start(bytes));
    const auto block = sluice::kv::decode_block(bytes);
    if (!block) return 0;
    SLUICE_ASSERT(whole.has_value() && *whole == size);
    const std::string again = sluice::kv::encode_block(
        block->header, block->payload.size(), [&block](std::span<std::byte> out) {
            if (!out.empty()) std::memcpy(out.data(), block->payload.data(), out.size());
        });
    SLUICE_ASSERT(again == bytes);
    return 0;
}
