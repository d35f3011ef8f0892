#include "tests/engine/drive.h"

#include "tests/engine/krill.h"

namespace sluice::engine {

std::unique_ptr<Engine> make_engine(EngineOptions options, const std::string& file) {
    if (options.pool_tokens == EngineOptions{}.pool_tokens) options.pool_tokens = 16'384;
    auto engine = Engine::create(krill::model(file), std::move(options));
    EXPECT_TRUE(engine.has_value());
    return std::move(*engine);
}

std::shared_ptr<Answer> send(Engine& engine, Request request) {
    auto answer = std::make_shared<Answer>();
    const auto submitted = engine.submit(std::move(request), [answer](const Output& output) {
        EXPECT_FALSE(answer->done()) << "an output came after the end";
        answer->tokens.insert(answer->tokens.end(), output.tokens.begin(), output.tokens.end());
        answer->logprobs.insert(answer->logprobs.end(), output.logprobs.begin(),
                                output.logprobs.end());
        if (!output.tokens.empty() && !output.input_logprobs.empty())
            answer->input_logprobs = output.input_logprobs;
        answer->last = output;
        ++answer->outputs;
    });
    EXPECT_TRUE(submitted.has_value()) << submitted.error().to_string();
    return answer;
}

void run(Engine& engine) {
    while (engine.step()) {
    }
}

Request greedy(const std::string& id, std::vector<TokenId> prompt, std::uint32_t tokens) {
    Request request;
    request.id = id;
    request.input_ids = std::move(prompt);
    request.sampling.max_new_tokens = tokens;
    request.sampling.temperature = 0.0F;
    return request;
}

Request sampled(const std::string& id, std::vector<TokenId> prompt, std::uint64_t seed) {
    Request request = greedy(id, std::move(prompt), 40);
    request.sampling.temperature = 0.9F;
    request.sampling.top_p = 0.95F;
    request.sampling.top_k = 50;
    request.sampling.min_p = 0.01F;
    request.sampling.seed = seed;
    request.sampling.frequency_penalty = 0.3F;
    request.sampling.presence_penalty = 0.2F;
    request.sampling.repetition_penalty = 1.1F;
    request.sampling.ignore_eos = true;
    return request;
}

std::vector<TokenId> alone(const Request& request, EngineOptions options, const std::string& file) {
    const auto engine = make_engine(std::move(options), file);
    const auto answer = send(*engine, request);
    run(*engine);
    EXPECT_TRUE(answer->done());
    return answer->tokens;
}

std::vector<TokenId> long_prompt(std::size_t count, std::uint32_t salt) {
    std::vector<TokenId> ids = {0, 4083};
    while (ids.size() < count)
        ids.push_back(static_cast<TokenId>(300 + (ids.size() * 7919 + salt * 131) % 3000));
    return ids;
}

}  // namespace sluice::engine
