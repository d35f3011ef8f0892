#pragma once

// The answer to "where is this request": {"rid","state","outcome","legs","cache","resumes","shadow"}.

#include <map>
#include <string>
#include <vector>

#include "gateway/request_report.h"
#include "record/request_row.h"
#include "record/version_manifest.h"

namespace sluice::gateway {

/// Of a request that lives; `state` is "queued", "prefill" or "decode".
[[nodiscard]] std::string where_json(const RequestReport& report, std::string_view state);

/// Of one that is over: its answer's row and those of its copies; `state` is "done".
[[nodiscard]] std::string where_json(
    const record::RequestRow& answer, const std::vector<record::RequestRow>& copies,
    const std::map<std::string, record::VersionManifest>& manifests);

/// {"fingerprint","versions"}
[[nodiscard]] std::string versions_json(const std::string& fingerprint,
                                        const record::VersionManifest& manifest);

}  // namespace sluice::gateway
