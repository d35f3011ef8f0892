#include "app/run_prompt.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "app/command.h"
#include "app/run_interrupt.h"

namespace sluice::app {
namespace {

void show(std::string_view piece) {
    if (piece.empty()) return;
    print(piece);
    std::fflush(stdout);
}

std::string stats(const RunAnswer& answer, std::uint64_t seed, double seconds) {
    const std::size_t tokens = answer.ids().size();
    return fmt::format("{} prompt tokens, {} tokens, {:.1f} tokens/s, seed {}\n",
                       answer.prompt_tokens(), tokens,
                       seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0, seed);
}

}  // namespace

int run_prompt(const RunPromptOptions& options, const RunModel& model,
               const RunDefaults& defaults) {
    const auto line = prompt_row(options.prompt);
    if (!line) return fail(kWrongUse, line.error());
    Row row = RowParser(model, defaults).parse(*line, 0);
    if (!row.request) return fail(kFailed, row.request.error());
    engine::Request& request = row.request->request;
    request.id = row.id;
    request.sampling.seed = options.seed;

    const Interrupt interrupt;
    const auto started = std::chrono::steady_clock::now();
    RunAnswer answer(model.tokenizer, std::move(row.request->stop));
    const auto submitted =
        model.engine->submit(std::move(request), [&](const engine::Output& output) {
            const std::string piece = answer.push(output);
            if (!options.json) show(piece);
        });
    if (!submitted) return fail(kFailed, submitted.error());
    while (!Interrupt::requested() && model.engine->step()) {
    }
    const bool interrupted = !answer.finish();
    model.engine->stop();

    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (answer.finish() == engine::Finish::kFailed) return fail(kFailed, answer.message());
    print(options.json ? answer_row(row.id, options.seed, answer) + "\n" : "\n");
    std::fflush(stdout);
    const std::string line_of_stats = stats(answer, options.seed, seconds);
    std::fwrite(line_of_stats.data(), 1, line_of_stats.size(), stderr);
    return interrupted ? kInterrupted : kDone;
}

}  // namespace sluice::app
