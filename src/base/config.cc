#include "base/config.h"

#include <fmt/core.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <utility>

// Errors as values, and a bound on recursion; both are read by the header.
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/units.h"

namespace sluice::config {

struct Document::Impl {
    std::string name;
    toml::table root;
    std::multimap<std::uint32_t, Error> errors;  ///< By line.

    void note(const toml::source_region& source, std::string message) {
        if (errors.size() >= limits::kConfigErrors) return;
        errors.emplace(source.begin.line,
                       Error(ErrorCode::kInvalid, std::move(message), place(source)));
    }
    [[nodiscard]] std::string place(const toml::source_region& source) const {
        // Tables that TOML implies ([a.b] implies a) have no line of their own.
        return source.begin.line == 0 ? name : fmt::format("{}:{}", name, source.begin.line);
    }
};

struct Table::Node {
    std::shared_ptr<Document::Impl> document;
    toml::table* table;
    std::string path;  ///< "pool[0]", or empty at the root.
    std::set<std::string, std::less<>> known;

    [[nodiscard]] std::string full(std::string_view key) const {
        return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    }
    toml::node* find(std::string_view key) {
        known.emplace(key);
        return table->get(key);
    }
    void reject(std::string_view key, const toml::node& node, std::string_view why) {
        document->note(node.source(), fmt::format("{} {}", full(key), why));
    }
};

namespace {

/// TOML's dotted keys nest a table per dot, and tables are freed recursively: "a.a.a..." would end
/// the process. A run of dots between characters that end a key is bounded, wherever it stands.
bool keys_too_deep(std::string_view text) {
    constexpr std::string_view kEndsAKey = "=,[]{}#\n";
    std::size_t dots = 0;
    for (const char c : text) {
        if (c == '.') ++dots;
        if (dots > limits::kConfigKeyDepth) return true;
        if (kEndsAKey.find(c) != std::string_view::npos) dots = 0;
    }
    return false;
}

/// A key as a person can read it on one line, whatever is in it.
std::string printable(std::string_view text) {
    constexpr std::size_t kShown = 64;
    std::string shown;
    for (const char c : text.substr(0, kShown)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) {
            shown += fmt::format("\\x{:02x}", byte);
        } else {
            shown += c;
        }
    }
    return text.size() > kShown ? shown + "..." : shown;
}

std::string_view type_name(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table: return "a table";
        case toml::node_type::array: return "an array";
        case toml::node_type::string: return "text";
        case toml::node_type::integer: return "a whole number";
        case toml::node_type::floating_point: return "a number";
        case toml::node_type::boolean: return "true or false";
        default: return "a date or time";
    }
}

std::string wrong_type(std::string_view wanted, const toml::node& node) {
    return fmt::format("must be {}, not {}", wanted, type_name(node));
}

std::string outside(std::int64_t value, Range range) {
    return fmt::format("is {}, but must be from {} to {}", value, range.min, range.max);
}

}  // namespace

std::optional<std::string> Table::text(std::string_view key) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (node->is_string()) return node->as_string()->get();
    node_->reject(key, *node, wrong_type("text", *node));
    return std::nullopt;
}

std::optional<bool> Table::boolean(std::string_view key) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (node->is_boolean()) return node->as_boolean()->get();
    node_->reject(key, *node, wrong_type("true or false", *node));
    return std::nullopt;
}

std::optional<std::int64_t> Table::integer(std::string_view key, Range range) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_integer()) {
        node_->reject(key, *node, wrong_type("a whole number", *node));
        return std::nullopt;
    }
    const std::int64_t value = node->as_integer()->get();
    if (value >= range.min && value <= range.max) return value;
    node_->reject(key, *node, outside(value, range));
    return std::nullopt;
}

std::optional<Table::NumberOrWord> Table::integer_or(std::string_view key, Range range,
                                                     std::string_view word) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (node->is_string() && node->as_string()->get() == word) return NumberOrWord{};
    if (node->is_integer()) {
        const std::optional<std::int64_t> value = integer(key, range);
        return value ? std::optional(NumberOrWord{value}) : std::nullopt;
    }
    node_->reject(key, *node, fmt::format("must be a whole number or \"{}\"", word));
    return std::nullopt;
}

std::optional<double> Table::number(std::string_view key, double min) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_number()) {
        node_->reject(key, *node, wrong_type("a number", *node));
        return std::nullopt;
    }
    const double value = node->is_integer() ? static_cast<double>(node->as_integer()->get())
                                            : node->as_floating_point()->get();
    if (std::isfinite(value) && value >= min) return value;
    node_->reject(key, *node, fmt::format("is {}, but must be at least {}", value, min));
    return std::nullopt;
}

std::optional<std::chrono::milliseconds> Table::duration(std::string_view key) {
    const std::optional<std::string> written = text(key);
    if (!written) return std::nullopt;
    const auto parsed = parse_duration(*written);
    if (parsed) return *parsed;
    reject(key, printable(parsed.error().message()));
    return std::nullopt;
}

std::optional<std::uint64_t> Table::bytes(std::string_view key) {
    const std::optional<std::string> written = text(key);
    if (!written) return std::nullopt;
    const auto parsed = parse_bytes(*written);
    if (parsed) return *parsed;
    reject(key, printable(parsed.error().message()));
    return std::nullopt;
}

std::optional<Table> Table::table(std::string_view key) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return std::nullopt;
    if (node->is_table()) {
        return Table(
            std::make_shared<Node>(Node{node_->document, node->as_table(), node_->full(key), {}}));
    }
    node_->reject(key, *node, fmt::format("must be a table: [{}]", node_->full(key)));
    return std::nullopt;
}

std::vector<Table> Table::tables(std::string_view key) {
    toml::node* const node = node_->find(key);
    if (node == nullptr) return {};
    if (!node->is_array_of_tables()) {
        node_->reject(key, *node, fmt::format("must be written [[{}]]", node_->full(key)));
        return {};
    }
    std::vector<Table> tables;
    for (toml::node& element : *node->as_array()) {
        tables.push_back(Table(
            std::make_shared<Node>(Node{node_->document,
                                        element.as_table(),
                                        fmt::format("{}[{}]", node_->full(key), tables.size()),
                                        {}})));
    }
    return tables;
}

bool Table::has(std::string_view key) const { return node_->table->contains(key); }

void Table::forbid(std::string_view key, std::string_view why) {
    const toml::node* const node = node_->find(key);
    if (node != nullptr) node_->reject(key, *node, why);
}

std::string Table::place(std::string_view key) const {
    const toml::node* const node = key.empty() ? nullptr : node_->table->get(key);
    return node_->document->place(node != nullptr ? node->source() : node_->table->source());
}

void Table::reject(std::string_view key, std::string_view why) {
    const toml::node* const node = node_->table->get(key);
    node_->reject(key, node != nullptr ? *node : *node_->table, why);
}

void Table::finish() {
    const std::vector<std::string_view> known(node_->known.begin(), node_->known.end());
    for (const auto& [key, node] : *node_->table) {
        if (node_->known.contains(key.str())) continue;
        node_->document->note(key.source(),
                              fmt::format("unknown key '{}'{}", printable(node_->full(key.str())),
                                          did_you_mean(key.str(), known)));
    }
}

Result<Document> Document::parse(std::string_view text, std::string name) {
    if (text.size() > limits::kConfigFileBytes) {
        return std::unexpected(
            Error::out_of_range("file size", text.size(), limits::kConfigFileBytes).within(name));
    }
    if (keys_too_deep(text)) {
        return std::unexpected(
            Error(ErrorCode::kInvalid,
                  fmt::format("a key has more than {} levels", limits::kConfigKeyDepth), name));
    }
    auto impl = std::make_shared<Impl>();
    impl->name = std::move(name);
    toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return std::unexpected(Error(ErrorCode::kInvalid, printable(error.description()),
                                     impl->place(error.source())));
    }
    impl->root = std::move(parsed).table();
    return Document(std::move(impl));
}

Result<Document> Document::load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::unexpected(Error::io("cannot open the file", errno, path));
    std::string text(limits::kConfigFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) return std::unexpected(Error::io("cannot read the file", errno, path));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return parse(text, path);
}

Table Document::root() const {
    return Table(std::make_shared<Table::Node>(Table::Node{impl_, &impl_->root, "", {}}));
}

std::vector<Error> Document::errors() const {
    std::vector<Error> errors;
    for (const auto& [line, error] : impl_->errors) errors.push_back(error);
    return errors;
}

}  // namespace sluice::config
