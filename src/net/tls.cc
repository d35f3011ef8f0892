#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "base/assert.h"
#include "base/private_file.h"
#include "net/tls_session.h"

namespace sluice::net {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

// Of what a client offers, the first that it can speak with this server.
constexpr std::array<std::string_view, 2> kServed = {"http/1.1", "http/1.0"};
// As ALPN writes it: each name after its length.
constexpr std::array<unsigned char, 9> kProtocols = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// The reason that OpenSSL gives for its last failure.
std::string openssl_reason() {
    const unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
    const char* const reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "unknown error";
}

std::unexpected<Error> bad_file(const std::string& file) {
    return std::unexpected(Error::invalid("cannot be used for TLS: " + openssl_reason(), file));
}

Context make_context(const SSL_METHOD* method) {
    Context context(SSL_CTX_new(method), SSL_CTX_free);
    SLUICE_ASSERT(context != nullptr);
    SSL_CTX* const raw = context.get();
    SLUICE_ASSERT(SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1);
    // For TLS 1.2; what 1.3 offers is good as it is.
    SLUICE_ASSERT(SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // An idle connection holds no buffers, and what an OutputQueue holds may move before a retry.
    SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

/// Who speaks only other protocols is told so in the handshake, and not by bytes it can't read.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
    for (unsigned int at = 0; at < offered_size;) {
        const unsigned int size = offered[at];
        if (at + 1 + size > offered_size) break;
        const std::string_view name(reinterpret_cast<const char*>(offered + at + 1), size);
        if (std::ranges::find(kServed, name) != kServed.end()) {
            *chosen = offered + at + 1;
            *chosen_size = static_cast<unsigned char>(size);
            return SSL_TLSEXT_ERR_OK;
        }
        at += 1 + size;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

Result<Context> identity_context(const std::string& certificate_file, const std::string& key_file) {
    ERR_clear_error();
    Context context = make_context(TLS_server_method());
    SSL_CTX* const raw = context.get();
    if (SSL_CTX_use_certificate_chain_file(raw, certificate_file.c_str()) != 1)
        return bad_file(certificate_file);
    if (SSL_CTX_use_PrivateKey_file(raw, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
        return bad_file(key_file);
    if (SSL_CTX_check_private_key(raw) != 1) return bad_file(key_file);
    SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
    return context;
}

bool is_address(const std::string& host) {
    std::array<unsigned char, sizeof(in6_addr)> ignored;
    return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(std::string certificate_file,
                                                       std::string key_file) {
    std::shared_ptr<TlsIdentity> identity(
        new TlsIdentity(std::move(certificate_file), std::move(key_file)));
    if (auto loaded = identity->reload(); !loaded) return std::unexpected(loaded.error());
    return identity;
}

std::string TlsIdentity::version() const {
    return file_version(certificate_file_) + ' ' + file_version(key_file_);
}

bool TlsIdentity::changed() const { return version() != version_; }

Result<void> TlsIdentity::reload() {
    version_ = version();
    auto context = identity_context(certificate_file_, key_file_);
    if (!context) return std::unexpected(context.error());
    context_ = *std::move(context);
    return {};
}

std::chrono::system_clock::time_point TlsIdentity::valid_until() const {
    const X509* const certificate = SSL_CTX_get0_certificate(context_.get());
    SLUICE_ASSERT(certificate != nullptr);
    int days = 0;
    int seconds = 0;
    // An end that is no time counts as one that has come.
    if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) return {};
    return std::chrono::system_clock::now() + std::chrono::days(days) +
           std::chrono::seconds(seconds);
}

std::unique_ptr<TlsSession> TlsIdentity::open(int fd) const {
    auto session = std::make_unique<TlsSession>(context_.get(), fd);
    SSL_set_accept_state(session->ssl());
    return session;
}

Result<std::shared_ptr<TlsTrust>> TlsTrust::load(const std::string& ca_file) {
    ERR_clear_error();
    Context context = make_context(TLS_client_method());
    SSL_CTX* const raw = context.get();
    const int loaded = ca_file.empty() ? SSL_CTX_set_default_verify_paths(raw)
                                       : SSL_CTX_load_verify_file(raw, ca_file.c_str());
    if (loaded != 1) return bad_file(ca_file);
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
    SLUICE_ASSERT(SSL_CTX_set_alpn_protos(raw, kProtocols.data(), kProtocols.size()) == 0);
    return std::shared_ptr<TlsTrust>(new TlsTrust(std::move(context)));
}

std::unique_ptr<TlsSession> TlsTrust::open(int fd, const std::string& host) const {
    auto session = std::make_unique<TlsSession>(context_.get(), fd);
    SSL* const ssl = session->ssl();
    SSL_set_connect_state(ssl);
    if (is_address(host)) {
        SLUICE_ASSERT(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1);
    } else {
        SLUICE_ASSERT(SSL_set1_host(ssl, host.c_str()) == 1);
        SSL_set_tlsext_host_name(ssl, host.c_str());
    }
    return session;
}

}  // namespace sluice::net
