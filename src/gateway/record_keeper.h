#pragma once

// Keeps a row of every request, and tells whoever else wants to know: the access log, a collector of
// traces.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "gateway/request_report.h"
#include "gateway/trace_exporter.h"
#include "record/record_store.h"

namespace sluice::gateway {

class RecordKeeper final : public RequestObserver {
public:
    struct Options {
        std::shared_ptr<record::RecordStore> store;  ///< Null keeps no rows.
        bool access_log = false;
        std::shared_ptr<TraceExporter> traces;  ///< Null exports none.
        /// Copies are given to `add` by whoever compares them, and not kept at their end.
        bool copies_are_compared = false;
    };
    explicit RecordKeeper(Options options) : options_(std::move(options)) {}

    void on_done(const Generation& generation, const RequestReport& report) override;
    void on_refused(const RequestReport& report) override;

    /// Keeps a row, of a copy with what comparing it gave.
    void add(const RequestReport& report, std::optional<record::Comparison> comparison = {});

    [[nodiscard]] const std::shared_ptr<record::RecordStore>& store() const {
        return options_.store;
    }

private:
    /// Computed, and told to the store, once for what each worker says of itself.
    [[nodiscard]] std::string fingerprint_of(const std::shared_ptr<const port::ServerInfo>& worker);

    Options options_;
    std::map<std::shared_ptr<const port::ServerInfo>, std::string> fingerprints_;
};

/// One line about a request, as JSON: what the record says that an operator greps for.
[[nodiscard]] std::string access_line(const RequestReport& report);

}  // namespace sluice::gateway
