// Rule 11 of docs/exactness.md: whatever guesses, and however the guesses fall into steps, no token, no
// log-probability and no end of an answer changes.

#include <algorithm>
#include <map>
#include <tuple>

#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

std::string name_of(Speculation kind) {
    switch (kind) {
        case Speculation::kOff: return "Off";
        case Speculation::kLookup: return "Lookup";
        case Speculation::kMtp: return "Mtp";
        case Speculation::kAuto: return "Auto";
    }
    return "";
}

/// A story, and the beginning of the same again: look-up guesses well there.
std::vector<TokenId> repeating_prompt(std::size_t more = 40) {
    std::vector<TokenId> prompt = krill::reference("story").all_ids();
    const std::vector<TokenId> again = prompt;
    prompt.insert(prompt.end(), again.begin(), again.begin() + static_cast<std::ptrdiff_t>(more));
    return prompt;
}

/// Requests of all kinds: greedy and sampled, guessed well and badly.
std::vector<Request> requests() {
    std::vector<Request> all = {greedy("story", krill::reference("story").prompt_ids, 40),
                                greedy("again", repeating_prompt(), 40),
                                sampled("drawn", repeating_prompt(45), 3),
                                sampled("noise", long_prompt(70), 5)};
    all[2].sampling.max_new_tokens = 24;
    for (Request& request : all) request.return_logprobs = true;
    return all;
}

struct Counts {
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
};

class SpeculationTest : public testing::TestWithParam<std::tuple<std::string, Speculation>> {
protected:
    [[nodiscard]] static std::string file() { return std::get<0>(GetParam()); }
    [[nodiscard]] static EngineOptions with(EngineOptions options) {
        options.speculation = std::get<1>(GetParam());
        return options;
    }

    /// Answers of engines without speculation, computed once a file.
    [[nodiscard]] static const std::vector<std::shared_ptr<Answer>>& expected() {
        static std::map<std::string, std::vector<std::shared_ptr<Answer>>> known;
        auto& answers = known[file()];
        if (!answers.empty()) return answers;
        for (const Request& request : requests()) {
            const auto engine = make_engine({}, file());
            answers.push_back(send(*engine, request));
            run(*engine);
        }
        return answers;
    }

    /// Runs all requests together, twice: cold, and with prefixes in the pool.
    static Counts expect_equal(const EngineOptions& options) {
        const auto engine = make_engine(with(options), file());
        Counts counts;
        for (int round = 0; round < 2; ++round) {
            std::vector<std::shared_ptr<Answer>> answers;
            for (const Request& request : requests()) answers.push_back(send(*engine, request));
            run(*engine);
            for (std::size_t i = 0; i < answers.size(); ++i) {
                const Answer& theirs = *expected()[i];
                EXPECT_EQ(answers[i]->tokens, theirs.tokens) << i << " in round " << round;
                EXPECT_EQ(answers[i]->logprobs, theirs.logprobs) << i << " in round " << round;
                EXPECT_EQ(answers[i]->last.finish, theirs.last.finish);
                EXPECT_EQ(answers[i]->last.completion_tokens, theirs.tokens.size());
                counts.drafted += answers[i]->last.drafted;
                counts.accepted += answers[i]->last.accepted;
            }
            EXPECT_EQ(engine->stats().blocks_held, 0U);
        }
        EXPECT_LE(counts.accepted, counts.drafted);
        return counts;
    }
};

INSTANTIATE_TEST_SUITE_P(Kinds, SpeculationTest,
                         testing::Combine(testing::Values("krill-f16.gguf", "krill-q8_0.gguf"),
                                          testing::Values(Speculation::kLookup, Speculation::kMtp,
                                                          Speculation::kAuto)),
                         [](const auto& info) {
                             const bool f16 = std::get<0>(info.param) == "krill-f16.gguf";
                             return (f16 ? "F16" : "Q8") + name_of(std::get<1>(info.param));
                         });

TEST_P(SpeculationTest, ChangesNothingInBatchesChunksAndThreads) {
    using ThreadsAndChunk = std::pair<std::size_t, std::size_t>;
    for (const auto& [threads, chunk] :
         {ThreadsAndChunk{1, 1}, {1, 3}, {1, 64}, {2, 64}, {2, 512}}) {
        const Counts counts = expect_equal({.threads = threads, .prefill_chunk = chunk});
        if (std::get<1>(GetParam()) == Speculation::kAuto) continue;  // Where it is faster.
        EXPECT_GT(counts.accepted, 50U);
        EXPECT_GT(counts.drafted, counts.accepted);
    }
}

// The step has room for some of the guesses, or for none.
TEST_P(SpeculationTest, ChangesNothingWhereAStepHasNoRoomForGuesses) {
    expect_equal({.running_max = 4, .step_tokens = 5, .prefill_chunk = 5});
    for (const std::size_t tokens : {1U, 3U})
        expect_equal({.running_max = 1, .step_tokens = tokens, .prefill_chunk = 3});
}

TEST_P(SpeculationTest, ChangesNothingWithNeighboursThatComeAndGo) {
    for (const std::size_t neighbours : {1U, 6U, 31U}) {
        const auto engine = make_engine(with({.running_max = 64, .step_tokens = 100}), file());
        const auto answer = send(*engine, requests()[1]);
        for (std::size_t step = 0; !answer->done(); ++step) {
            const std::string id = "n" + std::to_string(step);
            if (step < neighbours) send(*engine, sampled(id, long_prompt(20 + step * 17), step));
            if (step % 3 == 2) engine->abort("n" + std::to_string(step / 3));
            ASSERT_TRUE(engine->step());
        }
        EXPECT_EQ(answer->tokens, expected()[1]->tokens) << neighbours << " neighbours";
    }
}

TEST_P(SpeculationTest, ChangesNothingWhenResumedAtEachToken) {
    const std::vector<TokenId>& whole = expected()[2]->tokens;
    const auto engine = make_engine(with({}), file());
    for (std::size_t given = 1; given < whole.size(); ++given) {
        Request resumed = requests()[2];
        resumed.id = "r" + std::to_string(given);
        resumed.resume_output_ids.assign(whole.begin(),
                                         whole.begin() + static_cast<std::ptrdiff_t>(given));
        const auto answer = send(*engine, resumed);
        run(*engine);
        std::vector<TokenId> tokens = resumed.resume_output_ids;
        tokens.insert(tokens.end(), answer->tokens.begin(), answer->tokens.end());
        ASSERT_EQ(tokens, whole) << "resumed after " << given;
    }
}

TEST_P(SpeculationTest, ChangesNothingUnderPreemption) {
    // Eight sequences of up to 4 blocks in a pool of 10.
    const auto engine = make_engine(with({.pool_tokens = 640, .running_max = 8}), file());
    std::vector<Request> sent;
    std::vector<std::shared_ptr<Answer>> answers;
    for (std::uint32_t i = 0; i < 8; ++i) {
        sent.push_back(sampled(std::to_string(i), long_prompt(50 + i, i), i));
        sent.back().sampling.max_new_tokens = 150;
        answers.push_back(send(*engine, sent.back()));
    }
    run(*engine);
    EXPECT_GT(engine->stats().preemptions, 0U);
    for (std::size_t i = 0; i < sent.size(); ++i)
        EXPECT_EQ(answers[i]->tokens, alone(sent[i], {}, file())) << i;
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

// The inverse control: an engine that takes guesses for picks answers with other tokens.
TEST_P(SpeculationTest, AGuessThatIsNotCheckedIsNoticed) {
    if (std::get<1>(GetParam()) == Speculation::kAuto) GTEST_SKIP() << "may not guess at all";
    const auto engine = make_engine(with({.trust_guesses = true}), file());
    std::vector<std::shared_ptr<Answer>> answers;
    for (const Request& request : requests()) answers.push_back(send(*engine, request));
    run(*engine);
    std::size_t different = 0;
    for (std::size_t i = 0; i < answers.size(); ++i)
        different += answers[i]->tokens != expected()[i]->tokens ? 1 : 0;
    EXPECT_GE(different, 2U);
}

/// How often the head's first guess is the token that greedy decoding picks.
double first_guess_acceptance(const std::string& file) {
    const auto model = krill::model(file);
    const std::size_t vocabulary = model->parameters().vocabulary;
    double right = 0;
    double guesses = 0;
    for (const krill::Reference& reference : krill::references()) {
        std::vector<TokenId> ids = reference.prompt_ids;
        const auto answer = alone(
            greedy(reference.name, ids, static_cast<std::uint32_t>(reference.greedy_ids.size())),
            {}, file);
        ids.insert(ids.end(), answer.begin(), answer.end());
        const std::vector<float> logits = krill::all_mtp_logits(model, ids, 512);
        // Row i guesses token i + 2. The first token of an answer has nobody to guess it.
        for (std::size_t row = reference.prompt_ids.size() - 1; row + 2 < ids.size(); ++row) {
            const auto at = std::span(logits).subspan(row * vocabulary, vocabulary);
            right += std::ranges::max_element(at) - at.begin() == ids[row + 2] ? 1 : 0;
            ++guesses;
        }
    }
    return right / guesses;
}

TEST(MtpAcceptanceTest, TheFirstGuessIsRightThreeTimesInFour) {
    for (const std::string file : {"krill-f16.gguf", "krill-q8_0.gguf"}) {
        const double acceptance = first_guess_acceptance(file);
        RecordProperty("acceptance", std::to_string(acceptance));
        EXPECT_GE(acceptance, 0.75) << file;
    }
}

// The engine's own drafts, deeper guesses and short memories included.
TEST(MtpAcceptanceTest, TheEnginesDraftsAreMostlyRight) {
    const auto engine = make_engine({.speculation = Speculation::kMtp});
    Counts counts;
    std::size_t tokens = 0;
    for (const krill::Reference& reference : krill::references()) {
        const auto answer = send(*engine, greedy(reference.name, reference.prompt_ids));
        run(*engine);
        EXPECT_EQ(answer->tokens, reference.greedy_ids) << reference.name;
        counts.drafted += answer->last.drafted;
        counts.accepted += answer->last.accepted;
        tokens += answer->tokens.size();
    }
    EXPECT_GE(static_cast<double>(counts.accepted), 0.6 * static_cast<double>(counts.drafted));
    EXPECT_GE(counts.accepted * 5, tokens * 2);  // Two of five tokens cost no step of their own.
}

TEST(SpeculatorTest, AModelWithoutAHeadIsRefusedOnlyWhereTheHeadWasAskedFor) {
    const auto model = krill::headless_model();
    const auto asked = Engine::create(model, {.speculation = Speculation::kMtp});
    ASSERT_FALSE(asked.has_value());
    EXPECT_EQ(asked.error().place(), "speculation");
    const auto either = Engine::create(model, {.speculation = Speculation::kAuto});
    ASSERT_TRUE(either.has_value());
    const auto answer = send(**either, requests()[1]);
    run(**either);
    EXPECT_EQ(answer->tokens, alone(requests()[1], {}, "krill-q8_0.gguf"));
}

}  // namespace
}  // namespace sluice::engine
