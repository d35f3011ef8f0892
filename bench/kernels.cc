// The kernels on fixed shapes, Krill's: how fast each is on this machine. With --count, each runs
// twice, the second time inside sluice_measured(), for callgrind to count (tools/kernel_counts.py).
//
// usage: kernels [--count] [NAME...]      Names that contain one of the words; all without one.

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/attention.h"
#include "tensor/gumbel.h"
#include "tensor/half.h"
#include "tensor/matmul.h"
#include "tensor/target.h"
#include "tensor/vector_ops.h"

// What callgrind counts: not inlined, and with a name without spaces, so that it can be found.
extern "C" [[gnu::noinline]] void sluice_measured(const std::function<void()>& run) {
    run();
    std::atomic_signal_fence(std::memory_order_seq_cst);  // Keeps the call from being the last act.
}

namespace sluice::tensor {
namespace {

struct Kernel {
    std::string name;
    std::size_t multiply_adds;  ///< Of one call; elements, where the kernel has no products.
    std::function<void()> run;
};

/// Small numbers of both signs, the same on every machine.
std::vector<float> numbers(std::size_t count, float scale = 1.0F) {
    std::vector<float> values(count);
    std::uint32_t state = 12345;
    for (float& value : values) {
        state = state * 1664525U + 1013904223U;
        value = (static_cast<float>(state >> 8) * 0x1p-23F - 1.0F) * scale;
    }
    return values;
}

std::vector<std::byte> encode(WeightType type, std::span<const float> values) {
    std::vector<std::byte> out;
    const auto put = [&out](auto value) {
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        out.insert(out.end(), raw, raw + sizeof(value));
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
        switch (type) {
            case WeightType::kF32: put(values[i]); break;
            case WeightType::kF16: put(float_to_half(values[i])); break;
            case WeightType::kBf16:
                put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16));
                break;
            case WeightType::kQ8_0:
                if (i % kQuantBlock == 0) put(float_to_half(0.01F));
                put(static_cast<std::int8_t>(values[i] * 127.0F));
                break;
        }
    }
    return out;
}

Kernel matmul_kernel(WeightType type, std::size_t rows, std::size_t inputs, std::size_t outputs) {
    struct State {
        PackedMatrix weights;
        FloatBuffer x;
        FloatBuffer y;
        QuantizedRows quantized;
    };
    auto state = std::make_shared<State>(
        State{.weights =
                  PackedMatrix::pack(type, outputs, inputs, encode(type, numbers(outputs * inputs)))
                      .value(),
              .x = FloatBuffer(rows * inputs),
              .y = FloatBuffer(rows * outputs),
              .quantized = QuantizedRows(rows, inputs)});
    std::ranges::copy(numbers(rows * inputs), state->x.data());
    if (type == WeightType::kQ8_0)
        for (std::size_t row = 0; row < rows; ++row)
            state->quantized.quantize_row(row, state->x.data() + row * inputs, inputs);
    return {std::string("matmul-") + std::string(to_string(type)) + "-" + std::to_string(rows) +
                "x" + std::to_string(inputs) + "x" + std::to_string(outputs),
            rows * inputs * outputs, [=] {
                State& s = *state;
                const PanelRange all{0, s.weights.panels()};
                if (type == WeightType::kQ8_0)
                    matmul(s.weights, s.quantized, 0, rows, s.y.data(), outputs, all);
                else
                    matmul(s.weights, s.x.data(), inputs, rows, s.y.data(), outputs, all);
            }};
}

Kernel attention_kernel(std::size_t heads, std::size_t latent, std::size_t rope,
                        std::size_t positions) {
    constexpr std::size_t kPage = 64;
    struct State {
        MlaShape shape;
        FloatBuffer rows;
        FloatBuffer query;
        FloatBuffer out;
        FloatBuffer scratch;
        std::vector<std::uint32_t> index;
    };
    const MlaShape shape{
        .heads = heads, .latent = latent, .rope = rope, .page_positions = kPage, .scale = 0.1F};
    const std::size_t pages = (positions + kPage - 1) / kPage;
    auto state = std::make_shared<State>(State{.shape = shape,
                                               .rows = FloatBuffer(pages * kPage * shape.width()),
                                               .query = FloatBuffer(heads * shape.width()),
                                               .out = FloatBuffer(heads * latent),
                                               .scratch = FloatBuffer(shape.scratch()),
                                               .index = std::vector<std::uint32_t>(pages)});
    std::ranges::copy(numbers(state->rows.size()), state->rows.data());
    std::ranges::copy(numbers(state->query.size()), state->query.data());
    std::iota(state->index.begin(), state->index.end(), 0U);
    return {"attention-" + std::to_string(heads) + "x" + std::to_string(latent) + "+" +
                std::to_string(rope) + "-" + std::to_string(positions),
            heads * positions * (2 * latent + rope), [=] {
                State& s = *state;
                const PagedRows paged{
                    .base = s.rows.data(), .stride = kPage * s.shape.width(), .index = s.index};
                mla_attention(s.shape, s.query.data(), paged, positions, s.out.data(),
                              {s.scratch.data(), s.scratch.size()});
            }};
}

/// A kernel over one row: run(x, y, out), all of `size`.
Kernel row_kernel(std::string name, std::size_t size,
                  std::function<void(std::span<float>, std::span<float>, std::span<float>)> run) {
    auto x = std::make_shared<std::vector<float>>(numbers(size));
    auto y = std::make_shared<std::vector<float>>(numbers(size));
    auto out = std::make_shared<std::vector<float>>(size);
    return {name + "-" + std::to_string(size), size,
            [=] { run({x->data(), size}, {y->data(), size}, {out->data(), size}); }};
}

std::vector<Kernel> all_kernels() {
    std::vector<Kernel> kernels;
    for (const WeightType type :
         {WeightType::kQ8_0, WeightType::kF16, WeightType::kBf16, WeightType::kF32})
        for (const std::size_t rows : {1, 4, 16, 64})
            kernels.push_back(matmul_kernel(type, rows, 256, 640));
    kernels.push_back(attention_kernel(4, 64, 32, 512));
    kernels.push_back(attention_kernel(3, 64, 32, 40));
    auto quantized = std::make_shared<QuantizedRows>(1, 256);
    kernels.push_back(row_kernel("quantize", 256, [=](auto x, auto, auto) {
        quantized->quantize_row(0, x.data(), x.size());
    }));
    kernels.push_back(row_kernel(
        "rms_norm", 256, [](auto x, auto weight, auto out) { rms_norm(x, weight, 1e-6F, out); }));
    kernels.push_back(row_kernel("silu_multiply", 192,
                                 [](auto x, auto y, auto out) { silu_multiply(x, y, out); }));
    kernels.push_back(row_kernel("add", 256, [](auto, auto y, auto out) { add_in_place(out, y); }));
    kernels.push_back(row_kernel("log_sum_exp", 4096,
                                 [](auto x, auto, auto out) { out[0] = log_sum_exp(x, out); }));
    kernels.push_back(row_kernel("gumbel_noise", 4096, [](auto, auto, auto out) {
        add_gumbel_noise({.seed = 42, .stream = 1, .position = 7}, out);
    }));
    return kernels;
}

// Fastest of many short rounds: what the kernel can do when nothing disturbs it.
void print_speed(const Kernel& kernel) {
    using Clock = std::chrono::steady_clock;
    std::size_t calls = 1;
    double best = 1e9;
    const auto end = Clock::now() + std::chrono::milliseconds(100);
    while (Clock::now() < end) {
        const auto start = Clock::now();
        for (std::size_t call = 0; call < calls; ++call) sluice_measured(kernel.run);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        best = std::min(best, seconds / static_cast<double>(calls));
        if (seconds < 100e-6) calls *= 2;
    }
    std::printf("%-28s %10.2f us %8.2f G/s\n", kernel.name.c_str(), best * 1e6,
                static_cast<double>(kernel.multiply_adds) / best / 1e9);
}

int main(std::span<const char* const> words) {
    const auto target = select_target();
    if (!target) {
        std::fprintf(stderr, "%s\n", target.error().to_string().c_str());
        return 1;
    }
    const bool count = !words.empty() && words.front() == std::string_view("--count");
    if (count) words = words.subspan(1);
    if (!count) std::printf("target %s\n", std::string(to_string(*target)).c_str());
    for (const Kernel& kernel : all_kernels()) {
        const auto named = [&](const char* word) { return kernel.name.contains(word); };
        if (!words.empty() && std::ranges::none_of(words, named)) continue;
        if (!count) {
            print_speed(kernel);
            continue;
        }
        kernel.run();  // Chooses the target's functions and touches the memory.
        sluice_measured(kernel.run);
        std::puts(kernel.name.c_str());
    }
    return 0;
}

}  // namespace
}  // namespace sluice::tensor

int main(int count, char** words) {
    return sluice::tensor::main(
        std::span<const char* const>(words + 1, static_cast<std::size_t>(count) - 1));
}
