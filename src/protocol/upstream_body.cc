#include "protocol/upstream_body.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

struct Edit {
    BodySpan where;  ///< What is replaced; of size 0, where something is put in.
    std::string with;
};

struct Edits {
    std::vector<Edit> replaced;
    std::string new_fields;  ///< To stand first in the object, separated by commas.

    void add_field(std::string_view field) {
        if (!new_fields.empty()) new_fields += ',';
        new_fields += field;
    }
};

void edit_model(Edits& edits, const RequestOutline& outline, std::string_view model) {
    std::string name;
    append_json_string(name, model);
    if (outline.model_value.empty()) return edits.add_field(R"("model":)" + name);
    edits.replaced.push_back({outline.model_value, std::move(name)});
}

void edit_usage(Edits& edits, std::string_view body, const RequestOutline& outline) {
    constexpr std::string_view kWish = R"({"include_usage":true})";
    const BodySpan& options = outline.stream_options_value;
    if (!outline.include_usage_value.empty())
        return edits.replaced.push_back({outline.include_usage_value, "true"});
    if (options.empty()) return edits.add_field(R"("stream_options":)" + std::string(kWish));
    if (body[options.begin] != '{') return edits.replaced.push_back({options, std::string(kWish)});
    const std::string_view inside = body.substr(options.begin + 1, options.size - 2);
    const bool empty = inside.find_first_not_of(" \t\r\n") == std::string_view::npos;
    edits.replaced.push_back({{.begin = options.begin + 1},
                              std::string(R"("include_usage":true)") + (empty ? "" : ",")});
}

/// Always of the same length: an engine that joins salts with a client's other fields must not get
/// one tenant's name out of another's.
std::string salt_text(std::string_view salt, std::string_view of_client) {
    constexpr std::size_t kDigits = 32;
    std::string both(salt);
    if (!of_client.empty() && of_client != "null") both.append(1, '\0').append(of_client);
    return '"' + to_hex(sha256(both)).substr(0, kDigits) + '"';
}

void edit_cache_salt(Edits& edits, std::string_view body, const RequestOutline& outline,
                     std::string_view salt) {
    const BodySpan& own = outline.cache_salt_value;
    std::string text = salt_text(salt, body.substr(own.begin, own.size));
    if (own.empty()) return edits.add_field(R"("cache_salt":)" + text);
    edits.replaced.push_back({own, std::move(text)});
}

}  // namespace

std::vector<UpstreamBodyPart> upstream_body(std::string_view body, const RequestOutline& outline,
                                            const UpstreamBodyEdits& edits) {
    Edits list;
    if (!edits.model.empty() && edits.model != outline.model)
        edit_model(list, outline, edits.model);
    if (edits.include_usage && !outline.include_usage) edit_usage(list, body, outline);
    if (!edits.cache_salt.empty()) edit_cache_salt(list, body, outline, edits.cache_salt);
    if (!list.new_fields.empty()) {
        if (!outline.empty_object) list.new_fields += ',';
        list.replaced.push_back({{.begin = outline.after_brace}, std::move(list.new_fields)});
    }
    std::ranges::sort(list.replaced, {}, [](const Edit& edit) { return edit.where.begin; });
    std::vector<UpstreamBodyPart> parts;
    parts.reserve(2 * list.replaced.size() + 1);
    std::size_t at = 0;
    for (Edit& edit : list.replaced) {
        parts.push_back({.kept = body.substr(at, edit.where.begin - at), .put_in = {}});
        parts.push_back({.kept = {}, .put_in = std::move(edit.with)});
        at = edit.where.begin + edit.where.size;
    }
    parts.push_back({.kept = body.substr(at), .put_in = {}});
    return parts;
}

}  // namespace sluice::protocol
