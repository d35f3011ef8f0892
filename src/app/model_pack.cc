// `sluice model pack`: computes a model's packed weights ahead of its first start.

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>

#include "app/command.h"
#include "app/model_verbs.h"
#include "engine/model.h"
#include "gateway/model_vocabulary.h"

namespace sluice::app {
namespace {

/// One line that is written over, for people who watch.
void show_progress(std::size_t done, std::size_t bytes) {
    fmt::print(stderr, "\rpacking: {} of {} MB{}", done / 1'000'000, bytes / 1'000'000,
               done == bytes ? "\n" : "");
    std::fflush(stderr);
}

}  // namespace

int model_pack(const ModelPackOptions& options) {
    const auto path = gateway::find_model(options.model);
    if (!path) return fail(kCannotStart, path.error());
    auto packing = engine::PackedOptions::from_environment();
    packing.use = engine::PackedUse::kRefresh;
    if (!options.json && ::isatty(STDERR_FILENO) == 1) packing.progress = show_progress;
    const auto start = std::chrono::steady_clock::now();
    const auto model = engine::Model::load(*path, std::move(packing));
    if (!model) return fail(kCannotStart, model.error());
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const engine::PackedWeights& weights = (*model)->weights();
    if (options.json) {
        print(boost::json::serialize(boost::json::object{{"file", weights.path.string()},
                                                         {"bytes", weights.bytes},
                                                         {"seconds", seconds},
                                                         {"new", weights.is_new},
                                                         {"fingerprint", weights.fingerprint}}) +
              "\n");
    } else {
        print(fmt::format("{} {}: {} bytes in {:.2f} s\n", weights.path.string(),
                          weights.is_new ? "is packed" : "was packed already, and is whole",
                          weights.bytes, seconds));
    }
    return kDone;
}

}  // namespace sluice::app
