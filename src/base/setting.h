#pragma once

#include <string>

namespace sluice {

/// A value and where it was set: "default", "sluice.toml:12", "--port".
template <class T>
struct Setting {
    T value{};
    std::string place = "default";

    const T& operator*() const { return value; }
    const T* operator->() const { return &value; }
};

}  // namespace sluice
