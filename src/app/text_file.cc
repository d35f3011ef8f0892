#include "app/text_file.h"

#include <cerrno>
#include <fstream>

namespace sluice::app {

Result<void> write_text_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return std::unexpected(Error::io("cannot write", errno, path));
    return {};
}

}  // namespace sluice::app
