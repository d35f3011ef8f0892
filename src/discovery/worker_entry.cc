#include "discovery/worker_entry.h"

#include <fmt/format.h>

#include "base/discovery_limits.h"
#include "net/url.h"

namespace sluice::discovery {

using routing::LegPhase;

Result<LegPhase> parse_phase(std::string_view text) {
    for (const LegPhase phase : {LegPhase::kFull, LegPhase::kPrefill, LegPhase::kDecode})
        if (text == to_string(phase)) return phase;
    return std::unexpected(Error::invalid(
        fmt::format("\"{}\" is not a phase; it must be full, prefill or decode", text), "phase"));
}

Result<void> check_worker_url(std::string_view url) {
    const auto wrong = [&](std::string_view why) {
        return std::unexpected(Error::invalid(std::string(why), "url"));
    };
    if (url.size() > limits::kWorkerUrlBytes)
        return wrong(fmt::format("is longer than {} bytes", limits::kWorkerUrlBytes));
    const auto parsed = net::parse_url(url);
    const std::string_view scheme = parsed && parsed->secure ? "https://" : "http://";
    if (!parsed || url != fmt::format("{}{}", scheme, parsed->authority))
        return wrong("is not a worker's address; write it like \"http://10.0.0.7:40001\"");
    return {};
}

Result<WorkerEntry> parse_worker(std::string_view text, std::string_view stable) {
    const std::size_t equals = text.find('=');
    WorkerEntry worker{.pool = std::string(stable), .url = std::string(text)};
    if (equals != std::string_view::npos && equals < text.find("://")) {
        const std::string_view place = text.substr(0, equals);
        const std::size_t slash = place.find('/');
        worker.pool = place.substr(0, slash);
        worker.url = text.substr(equals + 1);
        if (slash != std::string_view::npos) {
            const auto phase = parse_phase(place.substr(slash + 1));
            if (!phase) return std::unexpected(phase.error());
            worker.phase = *phase;
        }
    }
    if (const auto good = check_worker_url(worker.url); !good) return std::unexpected(good.error());
    return worker;
}

std::string to_text(const WorkerEntry& worker) {
    if (worker.phase == LegPhase::kFull) return fmt::format("{}={}", worker.pool, worker.url);
    return fmt::format("{}/{}={}", worker.pool, to_string(worker.phase), worker.url);
}

}  // namespace sluice::discovery
