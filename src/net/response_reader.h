#pragma once

// Turns the bytes of one answer into its head and pieces of its body, as they come. Knows no
// socket. What could be read in two ways is refused, as in RequestReader.
//
// Private to net/.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/http_message.h"

namespace sluice::net {

class ResponseReader {
public:
    enum class Step : std::uint8_t {
        kNeedMore,  ///< All that was fed is read.
        kHead,      ///< `status` and `headers` are there.
        kData,      ///< `data` is the next piece of the body.
        kDone,      ///< The answer is complete.
        kFailed,    ///< `error` says why.
    };
    enum class Expect : std::uint8_t { kBody, kHeadOnly };

    explicit ResponseReader(Expect expect);
    ~ResponseReader();
    ResponseReader(const ResponseReader&) = delete;
    ResponseReader& operator=(const ResponseReader&) = delete;

    /// `data` must stay where it is until `next` has returned `kNeedMore`.
    void feed(std::string_view data);
    [[nodiscard]] Step next();
    /// The other side sends no more: `kDone` if that ends the body, else `kFailed`.
    [[nodiscard]] Step end_of_input();

    [[nodiscard]] int status() const { return status_; }
    [[nodiscard]] const HttpHeaders& headers() const { return headers_; }
    [[nodiscard]] std::string_view data() const { return data_; }
    [[nodiscard]] const Error& error() const { return error_; }
    /// After `kDone`: the connection may carry another request.
    [[nodiscard]] bool reusable() const { return reusable_; }
    /// A byte of the answer was there.
    [[nodiscard]] bool started() const { return started_; }

private:
    class Parser;

    std::optional<Step> put();
    std::optional<Step> after_header();
    Step need_more();
    Step finish();
    Step fail(ErrorCode code, std::string message);

    Expect expect_;
    std::unique_ptr<Parser> parser_;
    std::string kept_;        ///< A line that had not ended.
    std::string_view input_;  ///< What of `kept_` or of the fed data is unread.
    std::string_view data_;
    std::size_t header_bytes_ = 0;
    int status_ = 0;
    HttpHeaders headers_;
    Error error_{ErrorCode::kInternal, {}};
    bool reusable_ = false;
    bool started_ = false;
};

}  // namespace sluice::net
