#include "app/run_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::app {
namespace {

constexpr std::chrono::milliseconds kTerminalEvery{100};
constexpr std::chrono::seconds kLogEvery{5};
constexpr std::size_t kBarCells = 24;

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

std::string summary(const RunCounts& counts, double seconds) {
    std::string notes;
    if (counts.failed > 0) notes = fmt::format("{} failed", counts.failed);
    if (counts.skipped > 0) {
        notes += fmt::format("{}{} done before", notes.empty() ? "" : ", ", counts.skipped);
    }
    const double rate = seconds > 0 ? static_cast<double>(counts.output_tokens) / seconds : 0.0;
    return fmt::format("{} rows{}, {} tokens, {:.1f} tokens/s", counts.rows,
                       notes.empty() ? "" : fmt::format(" ({})", notes), counts.output_tokens,
                       rate);
}

RunProgress::RunProgress(std::uint64_t total_bytes)
    : total_bytes_(total_bytes),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      next_(start_ + (terminal_ ? Clock::duration(kTerminalEvery) : Clock::duration(kLogEvery))) {}

double RunProgress::seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string RunProgress::line(const RunCounts& counts, std::uint64_t bytes_read) const {
    std::string text = summary(counts, seconds());
    if (total_bytes_ == 0) return text;
    const double share =
        std::min(1.0, static_cast<double>(bytes_read) /
                          static_cast<double>(std::max<std::uint64_t>(total_bytes_, 1)));
    const auto filled = static_cast<std::size_t>(share * kBarCells);
    return fmt::format("[{:#<{}}{:.<{}}] {:3.0f} %  {}", "", filled, "", kBarCells - filled,
                       share * 100.0, text);
}

void RunProgress::update(const RunCounts& counts, std::uint64_t bytes_read) {
    const auto now = Clock::now();
    if (now < next_) return;
    const std::string text = line(counts, bytes_read);
    if (terminal_) {
        write_error(fmt::format("\r\x1b[K{}", text));
        shown_ = true;
        next_ = now + kTerminalEvery;
    } else {
        write_error(text + "\n");
        next_ = now + kLogEvery;
    }
}

void RunProgress::clear() {
    if (shown_) write_error("\r\x1b[K");
    shown_ = false;
}

}  // namespace sluice::app
