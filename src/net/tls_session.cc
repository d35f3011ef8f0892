#include "net/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/error.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "base/assert.h"

namespace sluice::net {
namespace {

// ---- Sockets for OpenSSL: its own would raise SIGPIPE when the other side is gone -----------------

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int send_bytes(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t sent = ::send(fd_of(bio), from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
}

int receive_bytes(BIO* bio, char* to, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t received = ::recv(fd_of(bio), to, static_cast<std::size_t>(size), 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    return static_cast<int>(received);
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
    static const BIO_METHOD* const method = [] {
        BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
        SLUICE_ASSERT(made != nullptr);
        BIO_meth_set_write(made, send_bytes);
        BIO_meth_set_read(made, receive_bytes);
        BIO_meth_set_ctrl(made, control);
        return made;
    }();
    return method;
}

// ---- Why a certificate was not accepted -----------------------------------------------------------

class VerifyCategory final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "certificate"; }
    [[nodiscard]] std::string message(int value) const override {
        return std::string("its certificate is not accepted: ") +
               X509_verify_cert_error_string(value);
    }
};

const VerifyCategory& verify_category() {
    static const VerifyCategory category;
    return category;
}

int bounded(std::size_t bytes) { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)); }

}  // namespace

TlsSession::TlsSession(SSL_CTX* context, int fd) : ssl_(SSL_new(context)) {
    SLUICE_ASSERT(ssl_ != nullptr);
    BIO* const bio = BIO_new(socket_method());
    SLUICE_ASSERT(bio != nullptr);
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
}

TlsSession::Step TlsSession::handshake() {
    ERR_clear_error();
    errno = 0;
    return outcome(SSL_do_handshake(ssl_.get()));
}

TlsSession::Step TlsSession::read(char* to, std::size_t room) {
    ERR_clear_error();
    errno = 0;
    return outcome(SSL_read(ssl_.get(), to, bounded(room)));
}

TlsSession::Step TlsSession::write(std::string_view from) {
    ERR_clear_error();
    errno = 0;
    return outcome(SSL_write(ssl_.get(), from.data(), bounded(from.size())));
}

TlsSession::Step TlsSession::outcome(int result) {
    const int system_error = errno;
    if (result > 0) return {.bytes = static_cast<std::size_t>(result)};
    const int kind = SSL_get_error(ssl_.get(), result);
    switch (kind) {
        case SSL_ERROR_WANT_READ: return {.wait = Wait::kReadable};
        case SSL_ERROR_WANT_WRITE: return {.wait = Wait::kWritable};
        case SSL_ERROR_ZERO_RETURN: return {.error = asio::error::eof};
        default: break;
    }
    broken_ = true;
    return {.error = reason(kind, system_error)};
}

SystemError TlsSession::reason(int kind, int system_error) const {
    const unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (kind == SSL_ERROR_SYSCALL && system_error != 0) {
        return {system_error, boost::system::system_category()};
    }
    const long verified = SSL_get_verify_result(ssl_.get());
    if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
        return {static_cast<int>(verified), verify_category()};
    }
    // The connection ended without a goodbye: somebody may have cut it to shorten a message.
    if (code == 0 || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return asio::ssl::error::stream_truncated;
    }
    return {static_cast<int>(code), asio::error::get_ssl_category()};
}

bool TlsSession::holds_input() const { return SSL_pending(ssl_.get()) > 0; }

void TlsSession::say_goodbye() noexcept {
    if (broken_ || SSL_in_init(ssl_.get()) != 0) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
}

}  // namespace sluice::net
