#include "kv/retention.h"

#include <fmt/format.h>

#include "base/units.h"

namespace sluice::kv {
namespace {

Result<void> read_one(std::string_view part, RetentionTimes& times) {
    const std::size_t equals = part.find('=');
    const auto retention = retention_from(part.substr(0, equals));
    if (equals == std::string_view::npos || !retention || *retention == Retention::kNone)
        return std::unexpected(Error::invalid(
            fmt::format("\"{}\" must be agent=DURATION or chat=DURATION", part), "retention"));
    const auto life = parse_duration(part.substr(equals + 1));
    if (!life) return std::unexpected(life.error().within("retention"));
    if (*life < std::chrono::seconds(1) || *life > kRetentionMax)
        return std::unexpected(Error::invalid(
            fmt::format("\"{}\" must be between 1s and {}h", part, kRetentionMax.count()),
            "retention"));
    (*retention == Retention::kAgent ? times.agent : times.chat) = *life;
    return {};
}

}  // namespace

std::chrono::milliseconds RetentionTimes::of(Retention retention) const {
    switch (retention) {
        case Retention::kAgent: return agent;
        case Retention::kChat: return chat;
        case Retention::kNone: break;
    }
    return std::chrono::milliseconds::zero();
}

Result<RetentionTimes> parse_retention_times(std::string_view text) {
    RetentionTimes times;
    while (true) {
        const std::size_t comma = text.find(',');
        if (const auto done = read_one(text.substr(0, comma), times); !done)
            return std::unexpected(done.error());
        if (comma == std::string_view::npos) return times;
        text.remove_prefix(comma + 1);
    }
}

std::string to_string(const RetentionTimes& times) {
    return fmt::format("agent={},chat={}", format_duration(times.agent),
                       format_duration(times.chat));
}

}  // namespace sluice::kv
