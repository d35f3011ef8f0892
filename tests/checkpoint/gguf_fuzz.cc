// Any bytes: parse, and touch everything a caller may touch.

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/fingerprint.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/hyper_parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = sluice::checkpoint::GgufFile::parse(std::as_bytes(std::span(data, size)));
    if (!file) return 0;
    for (const auto& entry : file->metadata()) {
        (void)file->find_uint(entry.key);
        (void)file->find_float(entry.key);
        (void)file->find_bool(entry.key);
        (void)file->find_string(entry.key);
        (void)file->find_strings(entry.key);
        (void)file->find_ints(entry.key);
        (void)file->find_floats(entry.key);
    }
    for (const auto& tensor : file->tensors()) (void)file->find_tensor(tensor.name);
    (void)sluice::checkpoint::fingerprint(*file);
    (void)sluice::checkpoint::read_hyper_parameters(*file);
    return 0;
}
