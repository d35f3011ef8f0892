#pragma once

// The visitor that reads a table of settings (service_settings.h) from a table of a file: each field
// gets its default, and what the file says, with the place of it.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/setting.h"
#include "base/units.h"

namespace sluice {

/// Sets each field to its default, and to what the file says if there is a table.
class SettingReader {
public:
    SettingReader() = default;
    explicit SettingReader(config::Table table) : table_(std::move(table)) {}

    template <class T, class Default>
    void operator()(std::string_view key, Setting<T>& setting, Default&& value, std::string_view,
                    config::Range range = {}) {
        setting = {T(std::forward<Default>(value)), "default"};
        if (!table_) return;
        // What may be left empty may be written empty.
        if constexpr (std::is_same_v<T, std::string>) {
            if (setting->empty() && table_->text(key) == "") return;
        }
        const std::size_t dot = key.find('.');
        if (dot == std::string_view::npos) {
            read(*table_, key, setting, range);
        } else if (std::optional<config::Table> inner = table_->table(key.substr(0, dot))) {
            read(*inner, key.substr(dot + 1), setting, range);
            inner->finish();
        }
    }

private:
    template <class T>
    static void read(config::Table& table, std::string_view key, Setting<T>& setting,
                     config::Range range) {
        std::optional<T> value = get(table, key, T{}, range);
        if (value) setting = {std::move(*value), table.place(key)};
    }

    static std::optional<bool> get(config::Table& table, std::string_view key, bool,
                                   config::Range) {
        return table.boolean(key);
    }
    static std::optional<std::int64_t> get(config::Table& table, std::string_view key, std::int64_t,
                                           config::Range range) {
        return table.integer(key, range);
    }
    static std::optional<double> get(config::Table& table, std::string_view key, double,
                                     config::Range) {
        return table.number(key, 0.0);
    }
    static std::optional<std::optional<std::int64_t>> get(config::Table& table,
                                                          std::string_view key,
                                                          std::optional<std::int64_t>,
                                                          config::Range range) {
        const auto value = table.integer_or(key, range, "auto");
        return value ? std::optional(value->number) : std::nullopt;
    }
    static std::optional<std::string> get(config::Table& table, std::string_view key,
                                          const std::string&, config::Range) {
        constexpr std::size_t kLongest = 4096;
        std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        const auto is_control = [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || c == '\x7F';
        };
        if (!text->empty() && text->size() <= kLongest &&
            std::find_if(text->begin(), text->end(), is_control) == text->end()) {
            return text;
        }
        table.reject(key, "is empty, too long or holds control characters");
        return std::nullopt;
    }
    static std::optional<std::optional<std::string>> get(config::Table& table, std::string_view key,
                                                         const std::optional<std::string>&,
                                                         config::Range range) {
        std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        // "" is how TOML writes "not set", which it has no word for.
        if (text->empty()) return std::optional<std::string>();
        return get(table, key, std::string(), range);
    }
    static std::optional<std::chrono::milliseconds> get(config::Table& table, std::string_view key,
                                                        std::chrono::milliseconds, config::Range) {
        return table.duration(key);
    }
    static std::optional<std::vector<std::string>> get(config::Table& table, std::string_view key,
                                                       const std::vector<std::string>&,
                                                       config::Range) {
        return table.texts(key);
    }
    static std::optional<std::uint64_t> get(config::Table& table, std::string_view key,
                                            std::uint64_t, config::Range) {
        return table.bytes(key);
    }
    static std::optional<HostPort> get(config::Table& table, std::string_view key, const HostPort&,
                                       config::Range) {
        const std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        const Result<HostPort> address = parse_host_port(*text);
        if (address) return *address;
        table.reject(key, "is not an address; write it like \"127.0.0.1:8080\" or \"[::1]:8080\"");
        return std::nullopt;
    }

    std::optional<config::Table> table_;
};

}  // namespace sluice
