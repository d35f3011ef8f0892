#pragma once

// A TOML file, read so that every mistake is told with its line.
//
// A reader asks a table for the keys it knows. Every wrong value is noted and reading goes on with
// "absent", so that one run shows all mistakes; `finish` notes the keys nobody asked for, with the
// nearest name somebody did. A file is good only if `errors()` is empty at the end.
//
// Tables point into their document and don't outlive it. Not thread-safe.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::config {

struct Range {
    std::int64_t min = 0;
    std::int64_t max = 0;  ///< Inclusive.
};

class Table {
public:
    /// Absent keys and wrong values (which are noted) are nullopt.
    [[nodiscard]] std::optional<std::string> text(std::string_view key);
    /// ["a", "b"]; every element is text.
    [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view key);
    [[nodiscard]] std::optional<bool> boolean(std::string_view key);
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, Range range);
    /// A number of either kind that is finite and not below `min`.
    [[nodiscard]] std::optional<double> number(std::string_view key, double min);
    /// "10m"; see base/units.h.
    [[nodiscard]] std::optional<std::chrono::milliseconds> duration(std::string_view key);
    /// "4GiB"; see base/units.h.
    [[nodiscard]] std::optional<std::uint64_t> bytes(std::string_view key);
    /// A number in the range, or the word `word` as nullopt inside: threads = 4 | "auto".
    struct NumberOrWord {
        std::optional<std::int64_t> number;
    };
    [[nodiscard]] std::optional<NumberOrWord> integer_or(std::string_view key, Range range,
                                                         std::string_view word);

    [[nodiscard]] std::optional<Table> table(std::string_view key);
    /// [[key]], or empty.
    [[nodiscard]] std::vector<Table> tables(std::string_view key);

    [[nodiscard]] bool has(std::string_view key) const;
    /// Counts `key` as known; notes `why` if it is there. For what is not supported yet.
    void forbid(std::string_view key, std::string_view why);

    /// "sluice.toml:12" of a key, or of the table if the key is not there.
    [[nodiscard]] std::string place(std::string_view key = {}) const;

    /// Notes that the value of `key` is wrong.
    void reject(std::string_view key, std::string_view why);

    /// Notes every key nobody asked for. Call once all known keys were asked for.
    void finish();

private:
    friend class Document;
    struct Node;
    explicit Table(std::shared_ptr<Node> node) : node_(std::move(node)) {}
    std::shared_ptr<Node> node_;
};

class Document {
public:
    /// `name` stands for the file in messages. Fails on text that is not TOML.
    static Result<Document> parse(std::string_view text, std::string name);
    static Result<Document> load(const std::string& path);

    [[nodiscard]] Table root() const;

    /// Noted so far, at most limits::kConfigErrors, in the order of the file.
    [[nodiscard]] std::vector<Error> errors() const;

    struct Impl;  ///< Private to config.cc.

private:
    explicit Document(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::config
