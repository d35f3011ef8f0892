#pragma once

// Certificates made for a test: an authority of its own, and servers it vouches for.

#include <chrono>
#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace sluice::net::testing {

/// A folder with ca.pem, and NAME.pem and NAME.key of each server that was made.
class Certificates {
public:
    Certificates();
    ~Certificates();
    Certificates(const Certificates&) = delete;
    Certificates& operator=(const Certificates&) = delete;

    struct Server {
        std::string names = "DNS:localhost,IP:127.0.0.1";
        std::chrono::seconds valid_for = std::chrono::hours(24);  ///< Negative: it has expired.
        std::string common_name = "test";
    };
    /// Writes or replaces NAME.pem and NAME.key.
    void make(const std::string& name, const Server& server);
    void make(const std::string& name) { make(name, Server()); }

    [[nodiscard]] std::string ca_file() const { return folder_ + "/ca.pem"; }
    [[nodiscard]] std::string certificate(const std::string& name) const {
        return folder_ + "/" + name + ".pem";
    }
    [[nodiscard]] std::string key(const std::string& name) const {
        return folder_ + "/" + name + ".key";
    }

private:
    std::string folder_;
    std::shared_ptr<evp_pkey_st> authority_key_;
    std::shared_ptr<x509_st> authority_;
    long serial_ = 1;
};

}  // namespace sluice::net::testing
