#pragma once

// The public test vectors, where this machine has them.

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "tests/places.h"

namespace sluice::protocol {

inline std::optional<boost::json::value> load_vectors(const std::string& name) {
    const char* root = std::getenv("SLUICE_DATA");
    const std::filesystem::path source(sluice::kSourceDir);
    const std::filesystem::path folder = root ? root : source / ".." / "shared" / "data";
    std::ifstream file(folder / "protocol" / name, std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    boost::json::parse_options options;
    options.max_depth = 256;
    return boost::json::parse(text.str(), {}, options);
}

/// The field of an object, or null. Lives as long as `value`.
inline const boost::json::value& field(const boost::json::value& value, std::string_view name) {
    static const boost::json::value null;
    const boost::json::object* object = value.if_object();
    const boost::json::value* found = object ? object->if_contains(name) : nullptr;
    return found ? *found : null;
}

inline std::string text_of(const boost::json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : std::string();
}

}  // namespace sluice::protocol
