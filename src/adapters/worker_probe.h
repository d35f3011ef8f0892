#pragma once

// Asks a worker whether it can answer and what it is. Destroying a probe takes the question back.
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
    /// GET /ready, then GET /server_info: a result means that the worker takes requests.
    /// `on_result` is called once, later, and may destroy the probe. `time` holds for each of
    /// connecting, waiting and reading.
    [[nodiscard]] static std::unique_ptr<WorkerProbe> start(
        net::HttpClient& client, const std::string& worker_url,
        std::function<void(Result<port::ServerInfo>)> on_result,
        std::chrono::milliseconds time = std::chrono::seconds(2));

    /// GET /ready alone. A worker that is loading or stopping answers too, and says so.
    [[nodiscard]] static std::unique_ptr<WorkerProbe> load(
        net::HttpClient& client, const std::string& worker_url,
        std::function<void(Result<port::LoadReport>)> on_result,
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
