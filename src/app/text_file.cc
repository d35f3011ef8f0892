#include "app/text_file.h"

#include <cerrno>
#include <fstream>
#include <sstream>

namespace sluice::app {

Result<std::string> read_text_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::unexpected(Error::io("cannot open", errno, path));
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.bad()) return std::unexpected(Error::io("cannot read", errno, path));
    return std::move(text).str();
}

Result<void> write_text_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return std::unexpected(Error::io("cannot write", errno, path));
    return {};
}

}  // namespace sluice::app
