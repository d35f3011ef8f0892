#pragma once

// Asks a worker what it is and how it is: one GET, one answer. Destroying a probe takes it back.
//
// Threads: the loop's.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/http_client.h"
#include "port/load_report.h"
#include "port/server_info.h"

namespace sluice::adapters {

class WorkerProbe {
public:
    /// GET /ready. A worker that is loading or stopping answers too, and says so.
    /// `on_result` is called once, later, and may destroy the probe.
    [[nodiscard]] static std::unique_ptr<WorkerProbe> load(
        net::HttpClient& client, const std::string& worker_url,
        const std::function<void(Result<port::LoadReport>)>& on_result,
        std::chrono::milliseconds time = std::chrono::seconds(2));

    /// GET /server_info. kUnavailable while the worker is loading.
    [[nodiscard]] static std::unique_ptr<WorkerProbe> info(
        net::HttpClient& client, const std::string& worker_url,
        const std::function<void(Result<port::ServerInfo>)>& on_result,
        std::chrono::milliseconds time = std::chrono::seconds(2));

    ~WorkerProbe();
    WorkerProbe(const WorkerProbe&) = delete;
    WorkerProbe& operator=(const WorkerProbe&) = delete;

private:
    struct State;
    explicit WorkerProbe(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace sluice::adapters
