#pragma once

// Requests and replies on their way out: small parts joined into one text, large values between them
// shared, so that nobody copies these to send them.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "kv/shared_bytes.h"

namespace sluice::kv {

class RespWriter {
public:
    /// 2 (as long as nobody says otherwise) or 3: what maps, nulls and such look like.
    void set_version(int version) { version_ = version; }
    [[nodiscard]] int version() const { return version_; }

    void status(std::string_view line);  ///< "OK"
    /// "ERR what is wrong"; line breaks in it become spaces.
    void error(std::string_view line);
    void integer(std::int64_t value);
    void text(std::string_view bytes);
    /// The same; large ones are let go of once they have been sent.
    void text(SharedBytes bytes);
    void null();
    void null_array();
    void boolean(bool value);
    // Followed by as many values; a map by twice as many, keys and values in turn.
    void array(std::size_t size);
    void set(std::size_t size);
    void map(std::size_t size);

    /// A whole request.
    void command(std::initializer_list<std::string_view> words);

    [[nodiscard]] bool empty() const { return bytes_ == 0; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Hands over all that was written, in order. Empty afterwards, with its memory kept for the next
    /// small texts.
    void drain(FunctionRef<void(std::string_view)> on_text,
               FunctionRef<void(SharedBytes)> on_shared);

private:
    struct Shared {
        std::size_t position = 0;  ///< In `text_`, where it goes between.
        SharedBytes bytes;
    };

    void put(std::string_view bytes);
    void head(char kind, std::int64_t number);

    int version_ = 2;
    std::string text_;
    std::vector<Shared> shared_;
    std::size_t bytes_ = 0;
};

}  // namespace sluice::kv
