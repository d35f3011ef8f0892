#pragma once

// One request to a cache node while it is answered, at once or later.

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kv/resp_text.h"
#include "kv/resp_writer.h"
#include "kvnode/node_service.h"

namespace sluice::kvnode {

/// An answer that is written later. Its turn comes after those to earlier requests.
class RespTicket {
public:
    RespTicket(std::shared_ptr<kv::RespWriter> out, std::function<void()> done)
        : out_(std::move(out)), done_(std::move(done)) {}

    [[nodiscard]] kv::RespWriter& out() const { return *out_; }
    /// Once, when the answer is written. The client may be gone.
    void done() const { done_(); }

private:
    std::shared_ptr<kv::RespWriter> out_;
    std::function<void()> done_;
};

class RespCall {
public:
    enum class Others : std::uint8_t {
        kGoOn,  ///< What the client asks next may be answered meanwhile (and waits for its turn).
        kWait,  ///< It must not be: this one writes when it is ready.
    };

    RespCall(NodeService& service, NodeClient& client, std::vector<kv::RespText>& words,
             kv::RespWriter& out)
        : service(service), client(client), words(words), out(out) {}
    virtual ~RespCall() = default;
    RespCall(const RespCall&) = delete;
    RespCall& operator=(const RespCall&) = delete;

    NodeService& service;
    NodeClient& client;
    std::vector<kv::RespText>& words;  ///< The command and its arguments.
    kv::RespWriter& out;               ///< The answer, unless `later` is called.

    /// At most once, and before anything is written to `out`.
    [[nodiscard]] virtual RespTicket later(Others others) = 0;

    [[nodiscard]] std::string_view word(std::size_t index) const { return words[index].view(); }
};

}  // namespace sluice::kvnode
