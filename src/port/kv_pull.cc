#include "port/kv_pull.h"

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {

std::string to_json(const KvPullRequest& request) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    if (!request.hold.empty()) writer.field("hold", request.hold);
    writer.digests("keys", request.keys);
    if (!request.tenant.empty()) writer.field("tenant", request.tenant);
    writer.end_object();
    return out;
}

std::string to_json(const KvReleaseRequest& request) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("hold", request.hold);
    writer.end_object();
    return out;
}

Result<KvPullRequest> parse_kv_pull_request(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    KvPullRequest request;
    fields.read_optional_rid("hold", request.hold);
    fields.read_digests("keys", request.keys, limits::kPortBlockKeys);
    fields.read("tenant", request.tenant, limits::kPortSaltBytes);
    if (error) return std::unexpected(*error);
    return request;
}

Result<KvReleaseRequest> parse_kv_release_request(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    KvReleaseRequest request;
    JsonFields(**root, {}, error).read_rid("hold", request.hold);
    if (error) return std::unexpected(*error);
    return request;
}

}  // namespace sluice::port
