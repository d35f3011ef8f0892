#include "app/model_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "app/command.h"
#include "base/limits.h"

namespace sluice::app {

namespace json = boost::json;

namespace {

struct CloseFile {
    void operator()(std::FILE* file) const {
        if (file != stdin) std::fclose(file);
    }
};

/// A model has as many positions as a prompt can have tokens.
constexpr std::size_t kIdsBytes = 64 * 1024 * 1024;

Error bad_id(std::string_view what) {
    return Error::invalid(
        fmt::format("ids are whole numbers from 0, separated by commas, but there is {}", what));
}

Result<std::vector<TokenId>> ids_of_json(std::string_view text) {
    json::error_code code;
    const json::value value = json::parse(text, code);
    if (code) return std::unexpected(bad_id("broken JSON: " + code.message()));
    const json::object* object = value.if_object();
    const json::value* list = object ? object->if_contains("ids") : nullptr;
    if (!list || !list->is_array()) return std::unexpected(bad_id("JSON without a list \"ids\""));
    auto ids = json::try_value_to<std::vector<TokenId>>(*list);
    if (!ids) return std::unexpected(bad_id("another kind of value in \"ids\""));
    for (const TokenId id : *ids) {
        if (id < 0) return std::unexpected(bad_id(fmt::format("{}", id)));
    }
    return *std::move(ids);
}

bool separates(char byte) {
    return byte == ',' || std::isspace(static_cast<unsigned char>(byte)) != 0;
}

}  // namespace

Result<std::string> read_input(const std::string& path, std::size_t bytes_max) {
    const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin
                                                                 : std::fopen(path.c_str(), "rbe"));
    if (!file) {
        const int why = errno;
        if (why == ENOENT) return std::unexpected(Error::not_found("there is no such file", path));
        return std::unexpected(Error::io("cannot open the file", why, path));
    }
    std::string text;
    std::array<char, 64 * 1024> buffer{};
    for (;;) {
        const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get());
        text.append(buffer.data(), count);
        if (text.size() > bytes_max) {
            return std::unexpected(Error(
                ErrorCode::kOutOfRange, fmt::format("at most {} bytes are read", bytes_max), path));
        }
        if (count == buffer.size()) continue;
        if (std::ferror(file.get()) != 0) {
            return std::unexpected(Error::io("cannot read the file", errno, path));
        }
        if (std::feof(file.get()) != 0) return text;
    }
}

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end && separates(*at)) ++at;
    if (at != end && *at == '{') return ids_of_json(text);
    std::vector<TokenId> ids;
    while (at != end) {
        TokenId id = 0;
        const auto [next, code] = std::from_chars(at, end, id);
        if (code != std::errc{} || id < 0 || (next != end && !separates(*next))) {
            constexpr std::ptrdiff_t kShown = 24;
            const char* stop = at;
            while (stop != end && !separates(*stop) && stop - at < kShown) ++stop;
            return std::unexpected(bad_id(fmt::format("'{}'", std::string_view(at, stop))));
        }
        ids.push_back(id);
        for (at = next; at != end && separates(*at);) ++at;
    }
    return ids;
}

Result<std::size_t> parse_threads(const std::string& text) {
    if (text == "auto") return engine::kAutoThreads;
    std::size_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [next, code] = std::from_chars(text.data(), end, count);
    constexpr auto kMost = static_cast<std::size_t>(limits::kConfigThreads);
    if (code == std::errc{} && next == end && count >= 1 && count <= kMost) return count;
    return std::unexpected(
        Error(ErrorCode::kOutOfRange,
              fmt::format("must be auto or from 1 to {}, but is '{}'", kMost, text), "--threads"));
}

Result<engine::Speculation> parse_speculation(const std::string& text) {
    if (text == "off") return engine::Speculation::kOff;
    if (text == "auto") return engine::Speculation::kAuto;
    if (text == "lookup") return engine::Speculation::kLookup;
    if (text == "mtp") return engine::Speculation::kMtp;
    return std::unexpected(Error::invalid(
        fmt::format("'{}' is neither auto, off, lookup nor mtp", text), "--speculation"));
}

Result<std::vector<TokenId>> read_ids(const IdsOption& option) {
    if (option.file.empty()) {
        auto ids = parse_ids(option.text);
        if (!ids) return std::unexpected(ids.error().within("--ids"));
        return ids;
    }
    const auto text = read_input(option.file, kIdsBytes);
    if (!text) return std::unexpected(text.error());
    auto ids = parse_ids(*text);
    if (!ids) return std::unexpected(ids.error().within(option.file));
    return ids;
}

void print_bytes(std::string_view bytes) {
    print(bytes);
    if (::isatty(STDOUT_FILENO) == 1 && !bytes.ends_with('\n')) print("\n");
}

}  // namespace sluice::app
