#include "worker/engine_process.h"

#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "worker/worker_server.h"

namespace sluice::worker {
namespace {

using LoadedModel = Result<std::shared_ptr<const engine::Model>>;

class Process {
public:
    explicit Process(WorkerOptions options) : options_(std::move(options)) {}

    Result<int> run() {
        auto server = WorkerServer::listen(loop_, {.http = {.address = options_.address,
                                                            .port = options_.port,
                                                            .listen_fd = options_.listen_fd},
                                                   .about = options_.about,
                                                   .kv = options_.kv});
        if (!server) return std::unexpected(server.error());
        server_ = std::move(*server);
        loop_.on_signal({SIGINT, SIGTERM}, [this](int signal) { on_signal(signal); });
        if (options_.on_listening) options_.on_listening(server_->port());

        std::thread loader([this] {
            auto model = std::make_shared<LoadedModel>(engine::Model::load(options_.model));
            loop_.post([this, model] { on_model(std::move(*model)); });
        });
        loop_.run();
        loader.join();
        server_.reset();
        if (failure_) return std::unexpected(*failure_);
        return signal_;
    }

private:
    void on_model(LoadedModel model) {
        if (signal_ != 0) return;
        if (!model) return fail(model.error());
        if (auto served = server_->serve(*model, options_.engine, options_.ranks); !served) {
            return fail(served.error());
        }
        log::info("ready on port {}", server_->port());
        if (options_.on_ready) options_.on_ready(server_->port(), server_->info());
    }

    void on_signal(int signal) {
        const bool again = std::exchange(signal_, signal) != 0;
        log::info("stopping on signal {}", signal);
        const auto grace = again ? std::chrono::milliseconds(0) : options_.grace;
        server_->stop(grace, [this] { loop_.stop(); });
    }

    void fail(Error error) {
        failure_ = std::move(error);
        loop_.stop();
    }

    WorkerOptions options_;
    net::EventLoop loop_;
    std::unique_ptr<WorkerServer> server_;
    std::optional<Error> failure_;
    int signal_ = 0;
};

}  // namespace

Result<int> run_worker(WorkerOptions options) { return Process(std::move(options)).run(); }

}  // namespace sluice::worker
