#include "app/bench_conversation.h"

#include <algorithm>
#include <chrono>

#include "app/model_files.h"
#include "engine/engine.h"
#include "gateway/model_vocabulary.h"
#include "protocol/prompt_tokens.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

/// What an answer took from its first token on, which prefill brings.
struct Turn {
    std::vector<TokenId> tokens;
    engine::Output last;
    double seconds = 0.0;
};

/// Answers of one kind, over all repeats.
struct Turns {
    std::vector<double> speeds;
    std::size_t tokens = 0;
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;

    void add(const Turn& turn) {
        tokens = turn.tokens.size();
        drafted += turn.last.drafted;
        accepted += turn.last.accepted;
        if (tokens > 1) speeds.push_back(static_cast<double>(tokens - 1) / turn.seconds);
    }
};

Result<Turn> answer(engine::Engine& engine, std::vector<TokenId> prompt, std::size_t most) {
    Turn turn;
    engine::Request request;
    request.id = "turn";
    request.input_ids = std::move(prompt);
    request.sampling.max_new_tokens = static_cast<std::uint32_t>(most);
    request.sampling.temperature = 0.0F;
    auto start = Clock::now();
    auto end = start;
    const auto sent = engine.submit(std::move(request), [&](const engine::Output& output) {
        end = Clock::now();
        if (turn.tokens.empty()) start = end;
        turn.tokens.insert(turn.tokens.end(), output.tokens.begin(), output.tokens.end());
        turn.last = output;
    });
    if (!sent) return std::unexpected(sent.error());
    while (!turn.last.finish) engine.step();
    turn.seconds = std::chrono::duration<double>(end - start).count();
    return turn;
}

void append_turn(std::vector<TokenId>& conversation, const std::vector<TokenId>& said,
                 const std::vector<TokenId>& question) {
    conversation.insert(conversation.end(), said.begin(), said.end());
    conversation.insert(conversation.end(), question.begin() + 1, question.end());
}

/// One kind of speculation, and what was measured of it.
struct Speaker {
    std::string kind;
    std::unique_ptr<engine::Engine> engine;
    Turns first{};
    Turns again{};

    static Result<Speaker> create(const std::shared_ptr<const engine::Model>& model,
                                  std::size_t threads, const std::string& kind) {
        const auto speculation = parse_speculation(kind);
        if (!speculation) return std::unexpected(speculation.error());
        engine::EngineOptions options;
        options.threads = threads;
        options.speculation = *speculation;
        auto engine = engine::Engine::create(model, std::move(options));
        if (!engine) return std::unexpected(engine.error());
        return Speaker{.kind = kind, .engine = std::move(*engine)};
    }

    Result<void> converse(const BenchQuestions& questions, std::size_t most) {
        std::vector<TokenId> conversation = questions.first;
        const auto asked = answer(*engine, conversation, most);
        if (!asked) return std::unexpected(asked.error());
        append_turn(conversation, asked->tokens, questions.second);
        const auto between = answer(*engine, conversation, most);
        if (!between) return std::unexpected(between.error());
        append_turn(conversation, between->tokens, questions.first);
        const auto repeated = answer(*engine, conversation, most);
        if (!repeated) return std::unexpected(repeated.error());
        first.add(*asked);
        again.add(*repeated);
        return {};
    }
};

BenchEngineRow row_of(std::string_view test, std::size_t threads, const std::string& speculation,
                      Turns turns) {
    BenchEngineRow row{.test = std::string(test), .threads = threads, .tokens = turns.tokens};
    row.speculation = speculation;
    row.drafted = turns.drafted;
    row.accepted = turns.accepted;
    row.add_repeats(std::move(turns.speeds));
    return row;
}

}  // namespace

Result<BenchQuestions> bench_questions(const std::filesystem::path& path,
                                       const engine::Model& model) {
    const auto tokenizer = gateway::load_tokenizer(path);
    if (!tokenizer) return std::unexpected(tokenizer.error());
    const auto ids = [&](std::string_view text) -> Result<std::vector<TokenId>> {
        protocol::Conversation conversation;
        conversation.messages.emplace_back().parts = {{.text = std::string(text)}};
        const auto prompt = gateway::render(model.parameters().dialect, conversation);
        if (!prompt) return std::unexpected(prompt.error());
        return protocol::tokenize(*prompt, *tokenizer);
    };
    auto first = ids("Tell me a story about a fox named Mia.");
    if (!first) return std::unexpected(first.error());
    auto second = ids("What is the capital of France?");
    if (!second) return std::unexpected(second.error());
    return BenchQuestions{.first = *std::move(first), .second = *std::move(second)};
}

Result<void> bench_conversation(const std::shared_ptr<const engine::Model>& model,
                                const BenchQuestions& questions, const BenchEngineOptions& options,
                                const std::function<void(const BenchEngineRow&)>& on_row) {
    for (const std::size_t threads : options.threads) {
        std::vector<Speaker> speakers;
        for (const std::string& name : options.speculation) {
            auto speaker = Speaker::create(model, threads, name);
            if (!speaker) return std::unexpected(speaker.error());
            speakers.push_back(std::move(*speaker));
        }
        // In turns, so that a machine that slows down does so for all. The first conversation touches
        // memory, and `auto` measures.
        for (std::size_t repeat = 0; repeat <= options.repeats; ++repeat) {
            for (Speaker& speaker : speakers) {
                if (repeat == 1) speaker.first = speaker.again = {};
                if (auto done = speaker.converse(questions, options.decode); !done) return done;
            }
        }
        for (Speaker& speaker : speakers) {
            on_row(row_of("ask", threads, speaker.kind, std::move(speaker.first)));
            on_row(row_of("ask again", threads, speaker.kind, std::move(speaker.again)));
        }
    }
    return {};
}

}  // namespace sluice::app
