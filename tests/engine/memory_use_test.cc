// What `sluice model info` promises, beside what the engine takes.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>

#include "engine/engine.h"
#include "tests/engine/krill.h"
#include "tests/places.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLUICE_OTHER_ALLOCATOR 1
#else
#define SLUICE_OTHER_ALLOCATOR 0
#endif

namespace sluice::engine {
namespace {

std::size_t allocated() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

void expect_within(double share, std::size_t real, std::size_t promised) {
    EXPECT_LT(std::abs(static_cast<double>(real) - static_cast<double>(promised)),
              share * static_cast<double>(promised))
        << real << " bytes are taken, " << promised << " were promised";
}

constexpr std::size_t kThreads = 2;

std::size_t promised_activations(std::size_t rows) {
    return Engine::memory_use(krill::model("krill-q8_0.gguf"),
                              {.threads = kThreads, .step_tokens = rows})
        .activations;
}

TEST(MemoryUseTest, ActivationsTakeWhatIsPromised) {
    if (SLUICE_OTHER_ALLOCATOR) GTEST_SKIP() << "the sanitizer's allocator keeps no such count";
    for (const std::size_t rows : {std::size_t{64}, std::size_t{512}}) {
        const std::size_t promised = promised_activations(rows);
        ThreadTeam team(kThreads);
        const std::size_t before = allocated();
        const Forward forward(krill::model("krill-q8_0.gguf"), team, rows);
        expect_within(0.05, allocated() - before, promised);
    }
    EXPECT_GT(promised_activations(512), 2 * promised_activations(64));
}

TEST(MemoryUseTest, AnOutlineIsEnoughToKnow) {
    const std::string path = SLUICE_SOURCE_DIR "/models/krill/krill-q8_0.gguf";
    const auto file = checkpoint::GgufFile::open(path);
    ASSERT_TRUE(file.has_value());
    const auto outline = Model::outline(*file);
    ASSERT_TRUE(outline.has_value()) << outline.error().to_string();
    const auto model = krill::model("krill-q8_0.gguf");
    const EngineOptions options{.threads = kThreads};
    const MemoryUse promised = Engine::memory_use(*outline, options);
    const MemoryUse real = Engine::memory_use(model, options);
    EXPECT_EQ(promised.activations, real.activations);
    EXPECT_EQ(promised.weights, real.weights);
    EXPECT_EQ(promised.weights + promised.embedding, model->weight_bytes());
    const checkpoint::HyperParameters& p = model->parameters();
    EXPECT_EQ(promised.kv_pool,
              options.pool_tokens * p.layers * (p.kv_rank + p.rope) * sizeof(float));
    const MemoryUse with_head =
        Engine::memory_use(model, {.threads = kThreads, .speculation = Speculation::kAuto});
    EXPECT_EQ(with_head.kv_pool - real.kv_pool,
              KvPool::bytes(MtpDrafter::pool_shape(p, options.running_max)));
    EXPECT_EQ(promised.total(),
              promised.weights + promised.embedding + promised.kv_pool + promised.activations);
}

}  // namespace
}  // namespace sluice::engine
