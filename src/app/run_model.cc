#include "app/run_model.h"

#include <algorithm>

#include "gateway/model_vocabulary.h"
#include "tensor/target.h"

namespace sluice::app {

Result<RunModel> load_run_model(const RunModelOptions& options) {
    if (const auto target = tensor::select_target(); !target) {
        return std::unexpected(target.error());
    }
    const auto path = gateway::find_model(options.model);
    if (!path) return std::unexpected(path.error());
    auto tokenizer = gateway::load_tokenizer(*path);
    if (!tokenizer) return std::unexpected(tokenizer.error());
    auto model = engine::Model::load(*path);
    if (!model) return std::unexpected(model.error());
    std::string dialect = (*model)->parameters().dialect;

    engine::EngineOptions engine_options;
    engine_options.threads = options.threads;
    engine_options.speculation = options.speculation;
    engine_options.running_max = options.batch;
    engine_options.step_tokens = std::max(engine_options.step_tokens, options.batch);
    auto engine = engine::Engine::create(*std::move(model), std::move(engine_options));
    if (!engine) return std::unexpected(engine.error());
    return RunModel{*std::move(engine), *std::move(tokenizer), std::move(dialect)};
}

}  // namespace sluice::app
