#include "kvnode/node_process.h"

#include <csignal>
#include <memory>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "base/units.h"
#include "kvnode/node_http.h"
#include "kvnode/resp_server.h"

namespace sluice::kvnode {
namespace {

/// A disk that doesn't take what is left in this time keeps it no longer from ending.
constexpr std::chrono::seconds kSyncTime{30};
constexpr std::chrono::seconds kSweepEvery{1};

class Process {
public:
    explicit Process(NodeOptions options) : options_(std::move(options)) {}

    Result<int> run() {
        if (auto opened = open(); !opened) return std::unexpected(opened.error());
        loop_.on_signal({SIGINT, SIGTERM}, [this](int signal) { stop(signal); });
        sweep();
        log::info("ready on port {}, HTTP on port {}", resp_->port(), http_->port());
        if (options_.on_ready) options_.on_ready(resp_->port(), http_->port());
        loop_.run();
        resp_.reset();
        http_.reset();
        return signal_;
    }

private:
    Result<void> open() {
        if (options_.password.empty() && !is_loopback(options_.address)) {
            return std::unexpected(Error::invalid(
                "others reach this address, so a password must be set", "--password-file"));
        }
        std::shared_ptr<const net::TlsIdentity> tls;
        if (!options_.tls_cert.empty()) {
            auto loaded = net::TlsIdentity::load(options_.tls_cert, options_.tls_key);
            if (!loaded) return std::unexpected(loaded.error());
            tls = std::move(*loaded);
        }
        raise_file_limit();
        auto store = NodeStore::open(loop_, std::move(options_.store));
        if (!store) return std::unexpected(store.error());
        store_ = std::move(*store);
        service_ = std::make_unique<NodeService>(NodeService{
            .loop = loop_, .store = *store_, .faults = options_.faults, .password = {}});
        if (!options_.password.empty()) service_->password = sha256(options_.password);
        auto resp = listen_resp(*service_,
                                {.address = options_.address, .port = options_.port, .tls = tls});
        if (!resp) return std::unexpected(resp.error());
        resp_ = std::move(*resp);
        auto http = NodeHttp::listen(
            *service_, {.address = options_.address, .port = options_.http_port, .tls = tls});
        if (!http) return std::unexpected(http.error());
        http_ = std::move(*http);
        return {};
    }

    void sweep() {
        store_->sweep(wall_now());
        sweep_ = loop_.call_after(kSweepEvery, [this] { sweep(); });
    }

    void stop(int signal) {
        if (std::exchange(signal_, signal) != 0) return loop_.stop();
        log::info("stopping on signal {}", signal);
        // Nothing is put any more, so that there is an end to what has to be written.
        resp_.reset();
        http_->stop_accepting();
        overdue_ = loop_.call_after(kSyncTime, [this] {
            log::warn("the SSD did not take everything in time");
            loop_.stop();
        });
        store_->sync([this](const Result<void>& synced) {
            if (!synced) log::warn("not all is on the SSD: {}", synced.error().to_string());
            loop_.stop();
        });
    }

    NodeOptions options_;
    net::EventLoop loop_;
    std::unique_ptr<NodeStore> store_;
    std::unique_ptr<NodeService> service_;
    std::unique_ptr<net::TcpServer> resp_;
    std::unique_ptr<NodeHttp> http_;
    net::Timer sweep_;
    net::Timer overdue_;
    int signal_ = 0;
};

}  // namespace

Result<int> run_node(NodeOptions options) { return Process(std::move(options)).run(); }

}  // namespace sluice::kvnode
