// `sluice model logits`: one pass over the given tokens, written as it is computed, so that memory
// holds the cache of the tokens and one chunk, however many positions there are.

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "app/model_verbs.h"
#include "base/thread_team.h"
#include "engine/engine.h"
#include "engine/forward.h"
#include "gateway/model_vocabulary.h"
#include "tensor/target.h"

namespace sluice::app {
namespace {

/// Tokens computed together; changes no bit of the result.
constexpr std::size_t kChunkTokens = 256;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using OutputFile = std::unique_ptr<std::FILE, CloseFile>;

using ModelPtr = std::shared_ptr<const engine::Model>;

Result<ModelPtr> load(const std::string& name) {
    if (const auto target = tensor::select_target(); !target) {
        return std::unexpected(target.error());
    }
    const auto path = gateway::find_model(name);
    if (!path) return std::unexpected(path.error());
    return engine::Model::load(*path);
}

Result<void> check(const std::vector<TokenId>& ids, const checkpoint::HyperParameters& parameters) {
    if (ids.empty()) return std::unexpected(Error::invalid("there are no ids"));
    if (ids.size() > parameters.context_length) {
        return std::unexpected(Error(ErrorCode::kOutOfRange,
                                     fmt::format("there are {} ids, but the context is {} tokens",
                                                 ids.size(), parameters.context_length)));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (static_cast<std::uint32_t>(ids[i]) < parameters.vocabulary) continue;
        return std::unexpected(Error(ErrorCode::kOutOfRange,
                                     fmt::format("token id {} is not in the vocabulary of {}",
                                                 ids[i], parameters.vocabulary),
                                     fmt::format("ids[{}]", i)));
    }
    return {};
}

Result<void> write_logits(const ModelPtr& model, const std::vector<TokenId>& ids,
                          std::size_t threads, std::FILE* out) {
    constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
    const checkpoint::HyperParameters& parameters = model->parameters();
    ThreadTeam team(threads == engine::kAutoThreads
                        ? std::max(1U, std::thread::hardware_concurrency())
                        : threads);
    engine::Forward forward(model, team, std::min(kChunkTokens, ids.size()));
    auto pool =
        engine::KvPool::create({.blocks = ids.size() / kBlock + 1,
                                .block_tokens = kBlock,
                                .layers = parameters.layers,
                                .row_floats = std::size_t{parameters.kv_rank} + parameters.rope});
    if (!pool) return std::unexpected(pool.error());
    std::vector<engine::BlockIndex> blocks;
    while (blocks.size() * kBlock < ids.size()) blocks.push_back(*pool->allocate());

    int failure = 0;
    for (std::size_t first = 0; first < ids.size() && failure == 0; first += kChunkTokens) {
        engine::Batch batch;
        batch.block_tables = {blocks};
        for (std::size_t i = first; i < std::min(ids.size(), first + kChunkTokens); ++i) {
            batch.rows.push_back({.token = ids[i],
                                  .position = static_cast<std::uint32_t>(i),
                                  .sequence = 0,
                                  .wants_logits = true});
        }
        forward.run(batch, *pool, [&](std::size_t, std::span<float> logits) {
            if (failure != 0) return;
            if (std::fwrite(logits.data(), sizeof(float), logits.size(), out) != logits.size()) {
                failure = errno;
            }
        });
    }
    if (failure == 0 && std::fflush(out) != 0) failure = errno;
    pool->release(blocks);
    if (failure != 0) return std::unexpected(Error::io("cannot write", failure));
    return {};
}

}  // namespace

int model_logits(const ModelLogitsOptions& options) {
    const auto threads = parse_threads(options.threads);
    if (!threads) return fail(kWrongUse, threads.error());
    const auto ids = read_ids(options.ids);
    if (!ids) return fail(kWrongUse, ids.error());
    const auto model = load(options.model);
    if (!model) return fail(kCannotStart, model.error());
    const checkpoint::HyperParameters& parameters = (*model)->parameters();
    if (const auto good = check(*ids, parameters); !good) return fail(kFailed, good.error());

    const OutputFile out(std::fopen(options.out.c_str(), "wbe"));
    if (!out) return fail(kCannotStart, Error::io("cannot open the file", errno, options.out));
    const auto written = write_logits(*model, *ids, *threads, out.get());
    if (!written) return fail(kFailed, written.error().within(options.out));
    if (options.json) {
        print(boost::json::serialize(boost::json::value{{"positions", ids->size()},
                                                        {"vocabulary", parameters.vocabulary},
                                                        {"out", options.out}}) +
              "\n");
    } else {
        print(fmt::format("{}: f32 [{}, {}]\n", options.out, ids->size(), parameters.vocabulary));
    }
    return kDone;
}

}  // namespace sluice::app
