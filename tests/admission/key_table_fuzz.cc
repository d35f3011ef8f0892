// Whatever stands in the file of keys: it is refused with a place, or reads back as the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "admission/key_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using sluice::admission::KeyTable;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto table = KeyTable::parse(text);
    if (table) {
        const auto again = KeyTable::parse(table->to_json());
        if (!again || again->keys() != table->keys()) std::abort();
    }
    (void)sluice::admission::key_id(text);
    return 0;
}
