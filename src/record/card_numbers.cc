#include "record/card_numbers.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace sluice::record {

std::string format_ms(std::optional<double> ms) {
    if (!ms) return kNothing;
    if (*ms < 10.0) return fmt::format("{:.2f} ms", *ms);
    if (*ms < 1'000.0) return fmt::format("{:.0f} ms", *ms);
    if (*ms < 100'000.0) return fmt::format("{:.1f} s", *ms / 1000.0);
    return fmt::format("{:.0f} s", *ms / 1000.0);
}

std::string format_share(std::optional<double> share) {
    if (!share) return kNothing;
    if (*share == 1.0) return "100 %";
    if (*share == 0.0) return "0 %";
    return fmt::format("{:.2f} %", *share * 100.0);
}

std::string format_cost(std::optional<double> cost) {
    return cost ? fmt::format("{:.4g}", *cost) : kNothing;
}

std::string format_memory(std::uint64_t bytes) {
    if (bytes == 0) return kNothing;
    constexpr double kStep = 1024.0;
    auto value = static_cast<double>(bytes);
    const char* unit = "B";
    for (const char* const next : {"KiB", "MiB", "GiB", "TiB"}) {
        if (value < kStep) break;
        value /= kStep;
        unit = next;
    }
    return fmt::format("{:.3g} {}", value, unit);
}

std::string plain(std::string_view text) {
    std::string clean(text.substr(0, 256));
    for (char& c : clean) {
        if (static_cast<unsigned char>(c) < 0x20 || c == '\x7F') c = '?';
    }
    return clean;
}

std::string format_time(std::int64_t unix_ms) {
    std::time_t seconds = unix_ms / 1000;
    std::tm parts{};
    if (gmtime_r(&seconds, &parts) == nullptr) return kNothing;
    return fmt::format("{:%Y-%m-%d %H:%M} UTC", parts);
}

}  // namespace sluice::record
