#include "net/http_message.h"

#include <algorithm>

#include "net/ascii.h"

namespace sluice::net {

std::optional<std::string_view> HttpHeaders::find(std::string_view name) const {
    const auto field = std::ranges::find_if(
        fields_, [&](const auto& entry) { return equals_ignoring_case(entry.first, name); });
    if (field == fields_.end()) return std::nullopt;
    return field->second;
}

void HttpHeaders::add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
}

void HttpHeaders::set(std::string_view name, std::string value) {
    std::erase_if(fields_,
                  [&](const auto& entry) { return equals_ignoring_case(entry.first, name); });
    fields_.emplace_back(std::string(name), std::move(value));
}

HttpResponse HttpResponse::json(int status, std::string body) {
    return {.status = status,
            .headers = {{"Content-Type", "application/json"}},
            .body = std::move(body)};
}

HttpResponse HttpResponse::text(int status, std::string body) {
    return {.status = status,
            .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
            .body = std::move(body)};
}

}  // namespace sluice::net
