#pragma once

// What stands between a gateway and those who can reach it: API keys and TLS. Keys and certificate are
// read again when their files change; what can't be read changes nothing.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gateway/access.h"
#include "gateway/gateway.h"
#include "net/event_loop.h"
#include "net/tls.h"

namespace sluice::gateway {

struct ProtectionOptions {
    std::string keys_file;        ///< It need not exist. Empty: there are no keys.
    bool open = false;            ///< Without a key, from anywhere.
    std::string tls_certificate;  ///< PEM files; empty: plain HTTP.
    std::string tls_key;
    bool tls_admin = false;  ///< The admin address speaks TLS, too.
};

class Protection {
public:
    /// Sets `gateway`'s access and TLS. An error if others could reach an address that nothing
    /// protects, if a pool can't keep the tenants apart, or if a file is wrong.
    [[nodiscard]] static Result<Protection> load(const ProtectionOptions& options,
                                                 GatewayOptions& gateway);

    /// Looks at the files every second, and at once on SIGHUP. This stays where it is from now on.
    void watch(net::EventLoop& loop);

private:
    void look_later(net::EventLoop& loop);
    void look();

    void look_at_tenants();

    std::shared_ptr<Access> access_;
    std::shared_ptr<net::TlsIdentity> identity_;
    std::vector<std::string> one_tenant_pools_;
    bool open_ = false;
    bool mixed_ = false;  ///< There are more tenants than a pool can keep apart.
    net::Timer timer_;
};

}  // namespace sluice::gateway
