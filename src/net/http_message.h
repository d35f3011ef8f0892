#pragma once

// HTTP messages as plain data, so that handlers and tests need no socket.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::net {

/// Header fields in order of arrival. Names compare without case.
class HttpHeaders {
public:
    HttpHeaders() = default;
    HttpHeaders(std::initializer_list<std::pair<std::string, std::string>> fields)
        : fields_(fields) {}

    /// The first value of `name`.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
    void add(std::string name, std::string value);
    /// Makes room for so many fields at once.
    void reserve(std::size_t fields) { fields_.reserve(fields); }
    /// Replaces every value of `name`.
    void set(std::string_view name, std::string value);

    [[nodiscard]] auto begin() const { return fields_.begin(); }
    [[nodiscard]] auto end() const { return fields_.end(); }
    [[nodiscard]] std::size_t size() const { return fields_.size(); }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

struct HttpRequest {
    std::string method{};  ///< As sent, for example "POST".
    std::string path{};    ///< Percent-decoded, without the query: "/v1/models".
    std::string query{};   ///< Raw text after '?', without it.
    HttpHeaders headers{};
    std::string body{};
    std::string peer{};  ///< "127.0.0.1:40312"
};

struct HttpResponse {
    int status = 200;
    HttpHeaders headers{};  ///< Content-Length and Connection are added by the server.
    std::string body{};

    static HttpResponse json(int status, std::string body);
    static HttpResponse text(int status, std::string body);
};

}  // namespace sluice::net
