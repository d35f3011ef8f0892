#include "base/log.h"

#include <fmt/chrono.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "base/limits.h"
#include "base/nearest.h"

namespace sluice::log {
namespace {

constexpr auto kLevelNames =
    std::to_array<std::string_view>({"debug", "info", "warn", "error", "off"});
constexpr auto kWords =
    std::to_array<std::string_view>({"debug", "info", "warn", "error", "off", "text", "json"});

/// Name of the logger whose lines are the access log's.
constexpr const char* kAccess = "access";

std::string_view name(Level level) { return kLevelNames.at(static_cast<std::size_t>(level)); }

spdlog::level::level_enum to_spdlog(Level level) {
    switch (level) {
        case Level::kDebug: return spdlog::level::debug;
        case Level::kInfo: return spdlog::level::info;
        case Level::kWarn: return spdlog::level::warn;
        case Level::kError: return spdlog::level::err;
        case Level::kOff: return spdlog::level::off;
    }
    return spdlog::level::info;
}

Level from_spdlog(spdlog::level::level_enum level) {
    switch (level) {
        case spdlog::level::trace:
        case spdlog::level::debug: return Level::kDebug;
        case spdlog::level::info: return Level::kInfo;
        case spdlog::level::warn: return Level::kWarn;
        default: return Level::kError;
    }
}

/// Escapes as JSON does, which also keeps a text line one line. Bytes from 0x80 pass as they are.
void append_escaped(std::string& line, std::string_view text, Format format) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n') {
            line += "\\n";
        } else if (byte < 0x20 || byte == 0x7F) {
            line += fmt::format("\\u{:04x}", byte);
        } else {
            if (format == Format::kJson && (c == '"' || c == '\\')) line += '\\';
            line += c;
        }
    }
}

std::string utc(spdlog::log_clock::time_point time) {
    using std::chrono::milliseconds;
    const auto since = std::chrono::duration_cast<milliseconds>(time.time_since_epoch());
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                       since.count() % 1000);
}

class LineFormatter final : public spdlog::formatter {
public:
    explicit LineFormatter(Options options) : options_(std::move(options)) {}

    void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
        const std::string_view text(message.payload.data(), message.payload.size());
        const std::string line =
            message.logger_name == kAccess
                ? format_access_line(options_, utc(message.time), text)
                : format_line(options_, from_spdlog(message.level), utc(message.time), text);
        out.append(line.data(), line.data() + line.size());
    }

    [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
        return std::make_unique<LineFormatter>(options_);
    }

private:
    Options options_;
};

using Logger = std::shared_ptr<spdlog::logger>;

Logger make_logger(const char* name, Level level, spdlog::sink_ptr sink) {
    auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
    logger->set_level(to_spdlog(level));
    logger->flush_on(spdlog::level::debug);
    // What spdlog itself has to say (a closed stderr) helps nobody.
    logger->set_error_handler([](const std::string&) {});
    return logger;
}

struct Loggers {
    explicit Loggers(const Options& options) {
        auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
        sink->set_formatter(std::make_unique<LineFormatter>(options));
        events = make_logger("sluice", options.level, sink);
        access = make_logger(kAccess, options.level == Level::kOff ? Level::kOff : Level::kDebug,
                             std::move(sink));
    }
    Logger events;
    Logger access;
};

/// The loggers of the process. Never destroyed: threads may log until the very end.
struct State {
    std::mutex mutex;
    Loggers loggers{Options{}};
    std::atomic<Level> level = Level::kInfo;
};

State& state() {
    static auto* const kState = new State;
    return *kState;
}

}  // namespace

Result<Options> parse_options(std::string_view text) {
    Options options;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view word = text.substr(0, comma);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
        if (word == "text" || word == "json") {
            options.format = word == "json" ? Format::kJson : Format::kText;
            continue;
        }
        std::size_t level = 0;
        while (level < kLevelNames.size() && kLevelNames[level] != word) ++level;
        if (level == kLevelNames.size()) {
            return std::unexpected(
                Error(ErrorCode::kInvalid,
                      fmt::format("'{}' is not one of debug, info, warn, error, off, text, json{}",
                                  word, did_you_mean(word, kWords)),
                      "SLUICE_LOG"));
        }
        options.level = static_cast<Level>(level);
    }
    return options;
}

Result<void> configure_from_environment(std::string process) {
    const char* const text = std::getenv("SLUICE_LOG");
    Result<Options> options = parse_options(text == nullptr ? "" : text);
    if (!options) return std::unexpected(options.error());
    options->process = std::move(process);
    configure(*options);
    return {};
}

void configure(const Options& options) {
    Loggers loggers(options);
    const std::lock_guard lock(state().mutex);
    state().loggers = std::move(loggers);
    state().level = options.level;
}

bool enabled(Level level) { return level >= state().level.load(std::memory_order_relaxed); }

std::string format_line(const Options& options, Level level, std::string_view time,
                        std::string_view message) {
    const bool json = options.format == Format::kJson;
    std::string line =
        json ? fmt::format(R"({{"time":"{}","level":"{}","process":")", time, name(level))
             : fmt::format("{} {:<5} ", time, name(level));
    append_escaped(line, options.process, options.format);
    line += json ? R"(","message":")" : ": ";
    append_escaped(line, message.substr(0, limits::kLogLineBytes), options.format);
    if (message.size() > limits::kLogLineBytes) line += "...";
    line += json ? "\"}\n" : "\n";
    return line;
}

void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept {
    try {
        const std::string text = fmt::vformat(format, arguments);
        Logger logger;
        {
            const std::lock_guard lock(state().mutex);
            logger = state().loggers.events;
        }
        logger->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
    } catch (...) {  // NOLINT(bugprone-empty-catch): a line that can't be written is lost, no more.
    }
}

std::string format_access_line(const Options& options, std::string_view time,
                               std::string_view object) {
    std::string line = fmt::format(R"({{"time":"{}","process":")", time);
    append_escaped(line, options.process, Format::kJson);
    return line + "\",\"access\":" + std::string(object) + "}\n";
}

void access(std::string_view object) noexcept {
    try {
        Logger logger;
        {
            const std::lock_guard lock(state().mutex);
            logger = state().loggers.access;
        }
        logger->info(spdlog::string_view_t(object.data(), object.size()));
    } catch (...) {  // NOLINT(bugprone-empty-catch): a line that can't be written is lost, no more.
    }
}

}  // namespace sluice::log
