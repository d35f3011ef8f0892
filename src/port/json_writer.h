#pragma once

// Appends JSON to a string without building a tree: one frame is written per token and stream.
//
// The caller keeps the order right (a key, then its value); commas see to themselves. Texts may hold
// any bytes: what isn't UTF-8 is written as U+FFFD, so the result is always valid JSON.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace sluice::port {

class JsonWriter {
public:
    explicit JsonWriter(std::string& out) : out_(out) {}

    void begin_object() { open('{'); }
    void end_object() { out_ += '}'; }
    void begin_array() { open('['); }
    void end_array() { out_ += ']'; }

    void key(std::string_view name);

    void value(std::string_view text);
    void value(const char* text) { value(std::string_view(text)); }
    void value(bool flag);
    void value(std::int64_t number);
    void value(std::uint64_t number);
    /// The shortest decimal that reads back as the same float; null for what JSON has no number for.
    void value(float number);
    /// The same for a double.
    void value(double number);
    void null();
    /// What is JSON already.
    void raw(std::string_view json);

    template <std::integral T>
    void value(T number) {
        if constexpr (std::signed_integral<T>) {
            value(static_cast<std::int64_t>(number));
        } else {
            value(static_cast<std::uint64_t>(number));
        }
    }

    template <class T>
    void field(std::string_view name, const T& content) {
        key(name);
        value(content);
    }

    template <class Numbers>
    void array(std::string_view name, const Numbers& numbers) {
        key(name);
        begin_array();
        for (const auto& number : numbers) value(number);
        end_array();
    }

    /// Each as 64 lower-case hexadecimal digits.
    void digests(std::string_view name, std::span<const Sha256Digest> digests);

private:
    void open(char bracket);
    void separate();
    template <class Float>
    void floating(Float number);

    std::string& out_;
};

}  // namespace sluice::port
