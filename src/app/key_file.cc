#include "app/key_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/limits.h"
#include "base/private_file.h"

namespace sluice::app {

std::string key_file_path(const ServiceConfig& config, const StateFolder& folder) {
    return config.gateway.keys->value_or(folder.path() + "/keys.json");
}

Result<admission::KeyTable> read_keys(const std::string& path) {
    const auto text = read_small_file(path, limits::kApiKeyFileBytes);
    if (!text && text.error().code() == ErrorCode::kNotFound) return admission::KeyTable();
    if (!text) return std::unexpected(text.error());
    auto table = admission::KeyTable::parse(*text);
    if (table) return table;
    const Error& error = table.error();
    const std::string place = error.place().empty() ? path : path + ": " + error.place();
    return std::unexpected(Error(error.code(), error.message(), place));
}

Result<void> change_keys(const std::string& path,
                         const std::function<Result<void>(admission::KeyTable&)>& change) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) {
        std::error_code error;
        std::filesystem::create_directories(folder.parent_path(), error);
        ::mkdir(folder.c_str(), 0700);  // If it can't be made, the lock says so.
    }
    const auto lock = lock_beside(path);
    if (!lock) return std::unexpected(lock.error());
    auto table = read_keys(path);
    if (!table) return std::unexpected(table.error());
    if (auto changed = change(*table); !changed) return changed;
    return write_private_file(path, table->to_json());
}

}  // namespace sluice::app
