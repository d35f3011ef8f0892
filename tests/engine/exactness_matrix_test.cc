// The matrix of docs/exactness.md: one request, computed in every way there is, has the same tokens
// and the same bits of their log-probabilities. And its inverse: where a rule is broken, it has not.

#include <algorithm>
#include <bit>
#include <deque>

#include "base/hash.h"
#include "tests/engine/broken_rules.h"
#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

using test::BrokenRule;
using test::Rule;

struct Way {
    std::size_t batch = 1;    ///< Sequences at a time, neighbours included.
    std::size_t chunk = 512;  ///< Of a prefill.
    bool pool_hit = false;
    Speculation speculation = Speculation::kOff;
    std::size_t threads = 1;

    [[nodiscard]] std::string name() const {
        return "batch " + std::to_string(batch) + ", chunk " + std::to_string(chunk) +
               (pool_hit ? ", pool hit" : ", cold") +
               (speculation == Speculation::kOff ? "" : ", speculation") + ", threads " +
               std::to_string(threads);
    }
};

constexpr std::uint32_t kOutput = 10;

/// A text that begins anew, so that guesses are made; its greedy end, or one that is drawn.
Request repeating(bool drawn) {
    std::vector<TokenId> prompt = krill::reference("story").all_ids();
    prompt.resize(50);
    prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 22);
    Request request = drawn ? sampled("full", prompt, 9) : greedy("full", prompt);
    request.sampling.ignore_eos = true;
    request.sampling.max_new_tokens = kOutput;
    request.return_logprobs = true;
    return request;
}

Answer expected(const Request& request, const std::string& file) {
    const auto engine = make_engine({}, file);
    const auto answer = send(*engine, request);
    run(*engine);
    return *answer;
}

/// Whether `answer` is the end of `whole`, bit for bit.
bool ends(const Answer& whole, const Answer& answer) {
    const auto skipped = static_cast<std::ptrdiff_t>(whole.tokens.size() - answer.tokens.size());
    return std::ranges::equal(whole.tokens.begin() + skipped, whole.tokens.end(),
                              answer.tokens.begin(), answer.tokens.end()) &&
           std::ranges::equal(whole.logprobs.begin() + skipped, whole.logprobs.end(),
                              answer.logprobs.begin(), answer.logprobs.end());
}

/// The request in full, and resumed after each of its tokens.
std::deque<Request> beginnings(const Request& request, const Answer& whole, bool pool_hit) {
    std::deque<Request> result;
    for (std::size_t given = 0; given < whole.tokens.size(); ++given) {
        Request each = request;
        each.id = "t" + std::to_string(given);
        each.resume_output_ids.assign(whole.tokens.begin(),
                                      whole.tokens.begin() + static_cast<std::ptrdiff_t>(given));
        if (!pool_hit) each.salt.shared = each.id;
        result.push_back(each);
    }
    return result;
}

/// Keeps as many sequences running as the way wants: half of them ours, the others neighbours of
/// which one leaves in every third step.
class Crowd {
public:
    Crowd(Engine& engine, std::size_t size) : engine_(engine), size_(size) {}

    std::vector<std::shared_ptr<Answer>> run(std::deque<Request> ours) {
        std::vector<std::shared_ptr<Answer>> answers;
        for (std::size_t step = 0; !ours.empty() || running(answers) > 0; ++step) {
            while (!ours.empty() && running(answers) < (size_ + 1) / 2) {
                answers.push_back(send(engine_, std::move(ours.front())));
                ours.pop_front();
            }
            if (step % 3 == 2) engine_.abort("n" + std::to_string(step / 3));
            while (running(answers) + running(neighbours_) < size_) add_neighbour();
            EXPECT_TRUE(engine_.step());
        }
        return answers;
    }

private:
    static std::size_t running(const std::vector<std::shared_ptr<Answer>>& answers) {
        return static_cast<std::size_t>(
            std::ranges::count_if(answers, [](const auto& each) { return !each->done(); }));
    }

    void add_neighbour() {
        const std::size_t number = neighbours_.size();
        neighbours_.push_back(send(engine_, sampled("n" + std::to_string(number),
                                                    long_prompt(5 + number * 7 % 40), number)));
    }

    Engine& engine_;
    std::size_t size_;
    std::vector<std::shared_ptr<Answer>> neighbours_;
};

/// Whether the request has the bits of `whole` if it is computed in this way.
bool holds(const Way& way, const Request& request, const Answer& whole, const std::string& file) {
    const auto engine = make_engine(
        {.threads = way.threads, .prefill_chunk = way.chunk, .speculation = way.speculation}, file);
    if (way.pool_hit) {
        send(*engine, request);
        run(*engine);
    }
    const auto answers = Crowd(*engine, way.batch).run(beginnings(request, whole, way.pool_hit));
    EXPECT_EQ(answers.front()->last.cached_tokens, way.pool_hit ? 64U : 0U);
    return std::ranges::all_of(answers, [&](const auto& each) { return ends(whole, *each); });
}

struct Setting {
    std::string file;
    Speculation speculation;
    std::size_t threads;
    std::string name;
};

class MatrixTest : public testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(
    Settings, MatrixTest,
    testing::Values(Setting{"krill-f16.gguf", Speculation::kOff, 1, "F16"},
                    Setting{"krill-f16.gguf", Speculation::kOff, 2, "F16TwoThreads"},
                    Setting{"krill-f16.gguf", Speculation::kLookup, 1, "F16Lookup"},
                    Setting{"krill-f16.gguf", Speculation::kLookup, 2, "F16LookupTwoThreads"},
                    Setting{"krill-q8_0.gguf", Speculation::kOff, 1, "Q8"},
                    Setting{"krill-q8_0.gguf", Speculation::kOff, 2, "Q8TwoThreads"},
                    Setting{"krill-q8_0.gguf", Speculation::kLookup, 1, "Q8Lookup"},
                    Setting{"krill-q8_0.gguf", Speculation::kLookup, 2, "Q8LookupTwoThreads"}),
    [](const auto& info) { return info.param.name; });

TEST_P(MatrixTest, EveryWayGivesTheSameBits) {
    for (const bool drawn : {false, true}) {
        const Request request = repeating(drawn);
        const Answer whole = expected(request, GetParam().file);
        ASSERT_EQ(whole.tokens.size(), kOutput);
        for (const std::size_t batch : {1U, 2U, 7U, 32U}) {
            for (const std::size_t chunk : {1U, 3U, 64U, 512U}) {
                for (const bool pool_hit : {false, true}) {
                    const Way way{batch, chunk, pool_hit, GetParam().speculation,
                                  GetParam().threads};
                    ASSERT_TRUE(holds(way, request, whole, GetParam().file))
                        << (drawn ? "drawn, " : "greedy, ") << way.name();
                }
            }
        }
    }
}

/// A rule, and a way that differs in what it must not depend on. With q8_0, activations become small whole
/// numbers, which hides most differences in a last bit.
struct Control {
    Rule rule;
    Way way;
    bool drawn;
    std::string name;
    std::string file = "krill-q8_0.gguf";
};

class InverseTest : public testing::TestWithParam<Control> {};

INSTANTIATE_TEST_SUITE_P(
    Rules, InverseTest,
    testing::Values(
        Control{Rule::kSumsFollowBatch, {.batch = 32}, false, "SumsFollowBatch"},
        Control{Rule::kSplitsFollowChunk, {.chunk = 3}, false, "SplitsFollowChunk"},
        Control{Rule::kOwnChunkUnrounded, {.chunk = 3}, false, "OwnChunkUnrounded"},
        Control{
            Rule::kSlotsFollowBatch, {.batch = 32}, false, "SlotsFollowBatch", "krill-f16.gguf"},
        Control{Rule::kNoiseFollowsRow, {.batch = 7}, true, "NoiseFollowsRow"},
        Control{Rule::kDraftsAreNotChecked,
                {.speculation = Speculation::kLookup},
                true,
                "DraftsAreNotChecked"}),
    [](const auto& info) { return info.param.name; });

TEST_P(InverseTest, ABrokenRuleIsNoticed) {
    const Control& control = GetParam();
    const std::string& file = control.file;
    const Request request = repeating(control.drawn);
    ASSERT_TRUE(holds(control.way, request, expected(request, file), file));
    const BrokenRule broken(control.rule);
    EXPECT_FALSE(holds(control.way, request, expected(request, file), file));
}

// One digest for every build: with it, what the matrix shows for this build holds across builds, too.
TEST(MatrixDigestTest, IsTheCommittedOne) {
    Sha256 hash;
    for (const std::string file : {"krill-f16.gguf", "krill-q8_0.gguf"}) {
        for (const bool drawn : {false, true}) {
            const Answer whole = expected(repeating(drawn), file);
            for (std::size_t i = 0; i < whole.tokens.size(); ++i) {
                hash.update_u64(static_cast<std::uint64_t>(whole.tokens[i]));
                hash.update_u64(std::bit_cast<std::uint32_t>(whole.logprobs[i].chosen.logprob));
            }
        }
    }
    EXPECT_EQ(to_hex(hash.finish()),
              "2ed8581febcec10a7421b8e7e8ec920ef8a4d3a5be07de91d35d1fd479056f3e");
}

}  // namespace
}  // namespace sluice::engine
