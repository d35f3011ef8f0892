#pragma once

// Blocks from another worker: one question, and the values of its answer as they come, checked.
// Everything on the loop's thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv/block_value.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/generate.h"
#include "worker/kv_options.h"

namespace sluice::worker {

class KvPull {
public:
    struct Host {
        net::EventLoop& loop;
        net::HttpClient& client;
        const KvOptions& options;
        std::size_t value_bytes = 0;  ///< A larger value is no block of this engine.
        std::string tenant{};         ///< Whose blocks they are.
    };
    struct Callbacks {
        /// Number `index` of the keys that were asked for; the payload is valid during the call.
        std::function<void(std::size_t index, const kv::BlockValue& value, std::string_view raw)>
            on_value;
        std::function<void(const Error& error)> on_corrupt;
        /// Once, at the end; `why` is empty if the answer was whole.
        std::function<void(std::string why)> on_end;
    };

    /// `on_end` comes by `time` at the latest. Destroying it ends everything, from inside a callback, too.
    KvPull(const Host& host, const port::KvSource& source, std::vector<kv::BlockKey> keys,
           std::chrono::nanoseconds time, Callbacks callbacks);
    ~KvPull() { *alive_ = false; }
    KvPull(const KvPull&) = delete;
    KvPull& operator=(const KvPull&) = delete;

private:
    void on_data(std::string_view data);
    [[nodiscard]] Result<std::size_t> whole_bytes() const;
    void take();
    void end(std::string why);

    Host host_;
    std::vector<kv::BlockKey> keys_;
    Callbacks callbacks_;
    std::size_t next_ = 0;  ///< Of `keys_`: the source keeps the order.
    std::string buffer_;    ///< The value that is coming in.
    int status_ = 0;
    std::unique_ptr<net::HttpCall> call_;
    net::Timer deadline_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sluice::worker
