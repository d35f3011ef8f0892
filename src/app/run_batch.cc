#include "app/run_batch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "app/command.h"
#include "app/run_interrupt.h"
#include "app/run_journal.h"
#include "app/run_lines.h"
#include "app/run_progress.h"

namespace sluice::app {
namespace {

/// Complaints about left-out rows; further ones are only counted.
constexpr std::uint64_t kComplaintsMax = 20;

/// Size of the regular file behind `fd`; 0 for what has none.
std::uint64_t file_bytes(int fd) {
    struct stat status{};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    return static_cast<std::uint64_t>(status.st_size);
}

class Batch {
public:
    Batch(const RunBatchOptions& options, const RunModel& model, const RunDefaults& defaults,
          RunJournal& journal, int input)
        : options_(options),
          model_(model),
          parser_(model, defaults),
          journal_(journal),
          lines_(input),
          progress_(file_bytes(input)) {}

    int run() {
        while (!Interrupt::requested() && !failure_) {
            fill();
            if (in_flight_ == 0 && at_end_) break;
            model_.engine->step();
            progress_.update(counts_, lines_.offset());
        }
        return finish();
    }

private:
    /// A row that the engine works on.
    struct Flight {
        std::string id;
        std::uint64_t seed;
        RunAnswer answer;
    };

    void fill();
    [[nodiscard]] bool read_row();
    void start(Row row);
    void submit(const std::string& id, RowRequest request);
    void on_output(const std::shared_ptr<Flight>& flight, const std::string& rid,
                   const engine::Output& output);
    void write(std::string row);
    void fail_row(const std::string& id, const Error& error);
    void complain(const std::string& what);
    int finish();

    const RunBatchOptions& options_;
    const RunModel& model_;
    RowParser parser_;
    RunJournal& journal_;
    LineReader lines_;
    RunProgress progress_;
    RunCounts counts_;
    std::uint64_t rows_read_ = 0;
    std::uint64_t complaints_ = 0;
    std::size_t in_flight_ = 0;
    bool at_end_ = false;
    std::optional<Error> failure_;  ///< What ends the run: input or output is broken.
};

/// Takes rows until enough are in flight. Waits for input only if there is nothing else to do.
void Batch::fill() {
    while (in_flight_ < options_.batch && !at_end_ && !failure_ && !Interrupt::requested()) {
        if (in_flight_ > 0 && !lines_.ready()) return;
        if (!read_row()) return;
        progress_.update(counts_, lines_.offset());
    }
}

bool Batch::read_row() {
    const auto line = lines_.next();
    if (!line) {
        failure_ = line.error().within(options_.input);
        return false;
    }
    if (line->kind == LineKind::kStopped) return false;
    if (line->kind == LineKind::kEnd) {
        at_end_ = true;
        return false;
    }
    if (line->kind == LineKind::kTooLong) {
        start({.id = fmt::format("{}", rows_read_++),
               .request = std::unexpected(Error(
                   ErrorCode::kOutOfRange,
                   fmt::format("the line is longer than {} bytes", limits::kBatchLineBytes)))});
        return true;
    }
    if (line->text.find_first_not_of(" \t\r") == std::string_view::npos) return true;
    start(parser_.parse(line->text, rows_read_++));
    return true;
}

void Batch::start(Row row) {
    const auto claim = journal_.claim(row.id);
    if (!claim) {
        failure_ = claim.error();
        return;
    }
    switch (*claim) {
        case Claim::kDone: ++counts_.skipped; return;
        case Claim::kTwice:
            ++counts_.failed;
            return complain(fmt::format("row {} has an id that was used before, {}; it is left out",
                                        rows_read_ - 1, row.id));
        case Claim::kMine: break;
    }
    if (!row.request) return fail_row(row.id, row.request.error());
    submit(row.id, *std::move(row.request));
}

void Batch::submit(const std::string& id, RowRequest request) {
    if (!request.has_seed) request.request.sampling.seed = row_seed(options_.seed, id);
    request.request.id = id;
    const auto flight = std::make_shared<Flight>(Flight{
        id, request.request.sampling.seed, RunAnswer(model_.tokenizer, std::move(request.stop))});
    const auto submitted = model_.engine->submit(
        std::move(request.request),
        [this, flight, id](const auto& output) { on_output(flight, id, output); });
    if (!submitted) return fail_row(id, submitted.error());
    ++in_flight_;
}

void Batch::on_output(const std::shared_ptr<Flight>& flight, const std::string& rid,
                      const engine::Output& output) {
    RunAnswer& answer = flight->answer;
    const bool was_stopped = answer.stopped();
    counts_.output_tokens += output.tokens.size();
    (void)answer.push(output);
    if (answer.stopped() && !was_stopped && !output.finish) model_.engine->abort(rid);
    if (!output.finish) return;
    --in_flight_;
    // Taken back by us at the end of an interrupted run: not a result.
    if (*answer.finish() == engine::Finish::kAborted) return;
    if (*answer.finish() == engine::Finish::kFailed) ++counts_.failed;
    counts_.prompt_tokens += answer.prompt_tokens();
    write(answer_row(flight->id, flight->seed, answer));
}

void Batch::write(std::string row) {
    if (failure_) return;
    ++counts_.rows;
    if (auto written = journal_.append(std::move(row)); !written) failure_ = written.error();
}

void Batch::fail_row(const std::string& id, const Error& error) {
    ++counts_.failed;
    write(error_row(id, error));
}

void Batch::complain(const std::string& what) {
    if (++complaints_ > kComplaintsMax) return;
    progress_.clear();
    fail(kFailed, what);
}

int Batch::finish() {
    model_.engine->stop();
    progress_.clear();
    const bool interrupted = Interrupt::requested();
    const double seconds = progress_.seconds();
    const std::uint64_t failed = counts_.failed + journal_.failed_before();
    if (options_.json) {
        print(boost::json::serialize(boost::json::value{
                  {"rows", counts_.rows},
                  {"skipped", counts_.skipped},
                  {"failed", failed},
                  {"seed", options_.seed},
                  {"prompt_tokens", counts_.prompt_tokens},
                  {"output_tokens", counts_.output_tokens},
                  {"seconds", seconds},
                  {"tokens_per_s",
                   seconds > 0 ? static_cast<double>(counts_.output_tokens) / seconds : 0.0},
                  {"interrupted", interrupted}}) +
              "\n");
    }
    const std::string line = summary(counts_, seconds) +
                             (interrupted ? "; interrupted, the same command goes on\n" : "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
    if (failure_) return fail(kFailed, *failure_);
    if (interrupted) return kInterrupted;
    return failed > 0 ? kFailed : kDone;
}

}  // namespace

int run_batch(const RunBatchOptions& options, const RunModel& model, const RunDefaults& defaults) {
    const Interrupt interrupt;
    UniqueFd opened;
    int input = 0;
    if (options.input != "-") {
        opened.reset(::open(options.input.c_str(), O_RDONLY | O_CLOEXEC));
        if (!opened) {
            return fail(kCannotStart, Error::io("cannot open the file", errno, options.input));
        }
        input = opened.get();
    }
    std::error_code ignored;
    if (std::filesystem::equivalent(options.input, options.output, ignored)) {
        return fail(kWrongUse, "--input and --output are the same file");
    }
    auto journal = RunJournal::open(options.output);
    if (!journal) {
        const bool cancelled = journal.error().code() == ErrorCode::kCancelled;
        return fail(cancelled ? kInterrupted : kCannotStart, journal.error());
    }
    return Batch(options, model, defaults, *journal, input).run();
}

}  // namespace sluice::app
