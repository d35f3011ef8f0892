#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <xxhash.h>
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // XXH3 by the widest instructions that are there; the same sums.
#endif

#include "base/assert.h"

namespace sluice {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// What a digit is worth; more than 15: it is none.
constexpr auto kNibbles = [] {
    std::array<std::uint8_t, 256> nibbles{};
    nibbles.fill(0xFF);
    for (std::size_t i = 0; i < kHexDigits.size(); ++i)
        nibbles.at(static_cast<std::uint8_t>(kHexDigits[i])) = static_cast<std::uint8_t>(i);
    return nibbles;
}();

}  // namespace

struct Sha256::Context {
    EVP_MD_CTX* evp = EVP_MD_CTX_new();
    Context() { SLUICE_ASSERT(evp && EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) == 1); }
    ~Context() { EVP_MD_CTX_free(evp); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    /// The last one that was given back on this thread: block keys are named inside a step.
    static std::unique_ptr<Context>& spare() {
        thread_local std::unique_ptr<Context> context;
        return context;
    }
};

void Sha256::Recycle::operator()(Context* context) const { Context::spare().reset(context); }

Sha256::Sha256() : context_(Context::spare().release()) {
    if (context_) {
        SLUICE_ASSERT(EVP_DigestInit_ex(context_->evp, nullptr, nullptr) == 1);
    } else {
        context_.reset(std::make_unique<Context>().release());
    }
}
Sha256::~Sha256() = default;

Sha256& Sha256::update(std::span<const std::byte> data) {
    SLUICE_ASSERT(EVP_DigestUpdate(context_->evp, data.data(), data.size()) == 1);
    return *this;
}

Sha256& Sha256::update(std::string_view text) {
    return update(std::as_bytes(std::span(text.data(), text.size())));
}

Sha256& Sha256::update_u64(std::uint64_t value) {
    std::array<std::byte, 8> bytes{};
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(value & 0xFF);
        value >>= 8;
    }
    return update(bytes);
}

Sha256Digest Sha256::finish() {
    Sha256Digest digest{};
    unsigned int length = 0;
    SLUICE_ASSERT(EVP_DigestFinal_ex(context_->evp, digest.data(), &length) == 1);
    SLUICE_ASSERT(length == digest.size());
    return digest;
}

Sha256Digest sha256(std::string_view text) { return Sha256().update(text).finish(); }

Xxh128 xxh3_128(std::span<const std::byte> data) {
    const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
    return {.low = hash.low64, .high = hash.high64};
}

bool equal_in_constant_time(const Sha256Digest& left, const Sha256Digest& right) {
    return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    std::string text(bytes.size() * 2, '0');
    char* at = text.data();
    for (const std::uint8_t byte : bytes) {
        *at++ = kHexDigits[byte >> 4];
        *at++ = kHexDigits[byte & 15];
    }
    return text;
}

void append_hex(std::string& out, std::uint64_t value, int digits) {
    SLUICE_ASSERT(digits >= 0 && digits <= 16);
    std::array<char, 16> text{};
    for (int i = digits; i > 0; value >>= 4)
        text[static_cast<std::size_t>(--i)] = kHexDigits[value & 15];
    out.append(text.data(), static_cast<std::size_t>(digits));
}

std::optional<Sha256Digest> digest_from_hex(std::string_view text) {
    Sha256Digest digest{};
    if (text.size() != digest.size() * 2) return std::nullopt;
    std::uint8_t all = 0;  // No branch for each digit: names of blocks are read millions of times.
    for (std::size_t i = 0; i < digest.size(); ++i) {
        const std::uint8_t high = kNibbles[static_cast<std::uint8_t>(text[2 * i])];
        const std::uint8_t low = kNibbles[static_cast<std::uint8_t>(text[2 * i + 1])];
        all |= high | low;
        digest[i] = static_cast<std::uint8_t>(high << 4 | (low & 15));
    }
    return all < 16 ? std::optional(digest) : std::nullopt;
}

}  // namespace sluice
