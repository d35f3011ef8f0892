#include "base/config_checks.h"

namespace sluice::config {

bool is_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return !name.empty() && name.size() <= 64 &&
           name.find_first_not_of(kAllowed) == std::string_view::npos;
}

void check_url(Table& table, std::string_view key, const std::string& url) {
    const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
    const bool good = scheme > 0 && url.size() > scheme && !url.ends_with('/') &&
                      url.find_first_of(" \t\r\n?#@") == std::string::npos;
    if (!good) table.reject(key, "is not an address; write it like \"http://10.0.0.7:8000/v1\"");
}

}  // namespace sluice::config
