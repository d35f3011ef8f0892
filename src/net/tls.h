#pragma once

// TLS: what a server shows (its certificate) and whom a client believes (its authorities).
//
// TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only; ALPN says http/1.1.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace sluice::net {

class TlsSession;

/// A server's certificate and private key, read from PEM files, and again when these change.
/// Connections keep what they began with, so a reload interrupts nobody. One loop's thread.
class TlsIdentity {
public:
    /// The certificate file holds the server's own first, then those between it and a root. The
    /// error names the file that is missing, unreadable, or doesn't fit the other.
    [[nodiscard]] static Result<std::shared_ptr<TlsIdentity>> load(std::string certificate_file,
                                                                   std::string key_file);

    /// Reads both files again. If that fails the old identity stays, and the error says why.
    [[nodiscard]] Result<void> reload();

    /// Whether the files may have changed since they were last read, well or badly.
    [[nodiscard]] bool changed() const;

    /// When the server's own certificate ends.
    [[nodiscard]] std::chrono::system_clock::time_point valid_until() const;

    /// The server's side of the connection `fd`, before its handshake.
    [[nodiscard]] std::unique_ptr<TlsSession> open(int fd) const;

private:
    TlsIdentity(std::string certificate_file, std::string key_file)
        : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

    [[nodiscard]] std::string version() const;

    std::string certificate_file_;
    std::string key_file_;
    std::string version_;
    std::shared_ptr<ssl_ctx_st> context_;
};

/// Whose signatures a client accepts. Certificates are always verified, the host's name included.
class TlsTrust {
public:
    /// `ca_file` is a PEM file of authorities; empty for the system's.
    [[nodiscard]] static Result<std::shared_ptr<TlsTrust>> load(const std::string& ca_file);

    /// The client's side of the connection `fd` to `host` (a name or a numeric address).
    [[nodiscard]] std::unique_ptr<TlsSession> open(int fd, const std::string& host) const;

private:
    explicit TlsTrust(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}

    std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace sluice::net
