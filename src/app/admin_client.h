#pragma once

// How `sluice ctl` talks to a running gateway: one call to its admin address, one answer.

#include <boost/json/object.hpp>
#include <string>

#include "app/http_call.h"
#include "base/error.h"

namespace CLI {
class App;
}

namespace sluice::app {

/// What every verb of `ctl` takes.
struct AdminOptions {
    std::string url;    ///< Of the admin address; empty: see `admin_url`.
    std::string state;  ///< Folder of the service that is meant if `url` is empty.
    bool json = false;
};

/// Declares --url, --state and --json.
void add_admin_options(CLI::App& verb, AdminOptions& options, const std::string& json_help);

/// `--url`, else the address that the service of the state folder told, else
/// http://127.0.0.1:8081. Error `kInvalid` for a URL that is none.
[[nodiscard]] Result<std::string> admin_url(const AdminOptions& options);

/// Calls the admin address of `options`, with the key in $SLUICE_ADMIN_KEY if it is set;
/// `request.url` is a path ("/admin/status"). The body of a 2xx
/// answer, or an error: what the gateway said is wrong with its place, `kUnavailable` with the
/// address if nothing answers there, `kInvalid` for a URL that is none.
[[nodiscard]] Result<std::string> call_admin(const AdminOptions& options,
                                             net::ClientRequest request);

/// The same of an answer that is a JSON object; `kCorrupt` if it is none. A body of `request` is said
/// to be JSON.
[[nodiscard]] Result<boost::json::object> ask_admin(const AdminOptions& options,
                                                    net::ClientRequest request);

/// As `call_admin`, but the body is handed over piece by piece as it comes, whatever its length.
[[nodiscard]] Result<void> stream_admin(const AdminOptions& options, net::ClientRequest request,
                                        const BodySink& sink);

/// Prints the error; a wrong address is wrong use, all else a failure.
[[nodiscard]] int fail_admin(const Error& error);

}  // namespace sluice::app
