#include "port/abort.h"

#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {

std::string to_json(const AbortRequest& request) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("rid", request.rid);
    writer.end_object();
    return out;
}

Result<AbortRequest> parse_abort_request(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    AbortRequest request;
    JsonFields(**root, {}, error).read_rid("rid", request.rid);
    if (error) return std::unexpected(*error);
    return request;
}

}  // namespace sluice::port
