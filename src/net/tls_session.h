#pragma once

// TLS over one non-blocking socket. It owns no socket and waits for nothing: each call does what can
// be done now, and says which readiness of the socket would let it go on.
//
// Private to net/.

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "net/loop_impl.h"

namespace sluice::net {

class TlsSession {
public:
    enum class Wait : std::uint8_t { kNone, kReadable, kWritable };

    struct Step {
        std::size_t bytes = 0;    ///< Done.
        Wait wait = Wait::kNone;  ///< Nothing was done; try again then.
        SystemError error{};      ///< `eof` for an orderly end.
    };

    /// The context is only used here: OpenSSL counts references of its own.
    TlsSession(SSL_CTX* context, int fd);
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// Done once it neither waits nor fails.
    [[nodiscard]] Step handshake();
    [[nodiscard]] Step read(char* to, std::size_t room);
    [[nodiscard]] Step write(std::string_view from);

    /// Input that the socket no longer announces, because it is decrypted already.
    [[nodiscard]] bool holds_input() const;

    /// Tells the other side that nothing follows, as far as the kernel takes it now.
    void say_goodbye() noexcept;

    [[nodiscard]] SSL* ssl() const { return ssl_.get(); }

private:
    struct Free {
        void operator()(SSL* ssl) const { SSL_free(ssl); }
    };
    [[nodiscard]] Step outcome(int result);
    [[nodiscard]] SystemError reason(int kind, int system_error) const;

    std::unique_ptr<SSL, Free> ssl_;
    bool broken_ = false;  ///< OpenSSL wants no further calls.
};

}  // namespace sluice::net
