#include "port/port_error.h"

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {

std::string to_json(const PortError& error) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.key("error");
    writer.begin_object();
    writer.field("message", error.message);
    writer.field("code", error.code);
    if (!error.param.empty()) writer.field("param", error.param);
    writer.end_object();
    writer.end_object();
    return out;
}

Result<PortError> parse_port_error(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    PortError result;
    if (const auto* const object = fields.object("error", Need::kRequired)) {
        JsonFields inside = fields.inside(*object, "error");
        inside.read("message", result.message, limits::kPortTextBytes);
        inside.read("code", result.code, limits::kPortTextBytes);
        inside.read("param", result.param, limits::kPortTextBytes);
    }
    if (error) return std::unexpected(*error);
    return result;
}

}  // namespace sluice::port
