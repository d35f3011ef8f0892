// Commands about names: whether they are there, how long they live, which there are.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kv/block_name.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

using std::chrono::milliseconds;

void count_look_up(RespCall& call, std::size_t found) {
    call.service.found += found;
    call.service.not_found += call.words.size() - 1 - found;
}

void exists(RespCall& call) {
    const kv::WallTime now = wall_now();
    std::size_t count = 0;
    for (std::size_t i = 1; i < call.words.size(); ++i)
        count += call.service.store.contains(call.word(i), now) ? 1 : 0;
    count_look_up(call, count);
    call.out.integer(static_cast<std::int64_t>(count));
}

/// KV.LONGEST name...: how many of them from the first on are here without a gap: of a chain's names, how
/// far it reaches.
void longest(RespCall& call) {
    const kv::WallTime now = wall_now();
    std::size_t i = 1;
    while (i < call.words.size() && call.service.store.contains(call.word(i), now)) ++i;
    count_look_up(call, i - 1);  // What is behind a gap is of no use to who asks.
    call.out.integer(static_cast<std::int64_t>(i - 1));
}

void erase(RespCall& call) {
    const kv::WallTime now = wall_now();
    std::int64_t count = 0;
    for (std::size_t i = 1; i < call.words.size(); ++i)
        count += call.service.store.erase(call.word(i), now) ? 1 : 0;
    call.out.integer(count);
}

/// -2: it isn't here; -1: it lives for ever.
std::int64_t life_left(RespCall& call, milliseconds unit) {
    const auto left = call.service.store.time_left(call.word(1), wall_now());
    if (!left) return -2;
    if (*left == milliseconds::max()) return -1;
    return (left->count() + unit.count() / 2) / unit.count();
}

void ttl(RespCall& call) { call.out.integer(life_left(call, std::chrono::seconds(1))); }
void pttl(RespCall& call) { call.out.integer(life_left(call, milliseconds(1))); }

/// When EXPIRE may set an end: as its flags say of the one that there is.
struct ExpireRules {
    bool nx = false;  ///< If there is none.
    bool xx = false;  ///< If there is one.
    bool gt = false;  ///< If the new one is later; none is the latest.
    bool lt = false;  ///< If it is sooner.

    [[nodiscard]] bool allow(milliseconds left, milliseconds wanted) const {
        const bool ends = left != milliseconds::max();
        return !(nx && ends) && !(xx && !ends) && !(gt && (!ends || wanted <= left)) &&
               !(lt && ends && wanted >= left);
    }
};

/// Nothing after an error, which is written.
std::optional<ExpireRules> expire_rules(RespCall& call) {
    ExpireRules rules;
    for (std::size_t i = 3; i < call.words.size(); ++i) {
        const std::string_view word = call.word(i);
        bool known = false;
        for (const auto& [name, flag] : {std::pair{"nx", &rules.nx}, std::pair{"xx", &rules.xx},
                                         std::pair{"gt", &rules.gt}, std::pair{"lt", &rules.lt}}) {
            if (!same_word(word, name)) continue;
            *flag = known = true;
        }
        if (known) continue;
        call.out.error(fmt::format("ERR Unsupported option {}", word.substr(0, 64)));
        return std::nullopt;
    }
    if (rules.nx && (rules.xx || rules.gt || rules.lt)) {
        call.out.error("ERR NX and XX, GT or LT options at the same time are not compatible");
        return std::nullopt;
    }
    if (rules.gt && rules.lt) {
        call.out.error("ERR GT and LT options at the same time are not compatible");
        return std::nullopt;
    }
    return rules;
}

void expire_in(RespCall& call, milliseconds unit) {
    const auto rules = expire_rules(call);
    if (!rules) return;
    const auto count = parse_integer(call.word(2));
    if (!count) return not_an_integer(call.out);
    constexpr std::int64_t kMost = std::int64_t{1} << 43;  // Milliseconds: 278 years.
    if (*count > kMost / unit.count()) {
        return call.out.error(fmt::format("ERR invalid expire time in '{}' command",
                                          unit.count() == 1 ? "pexpire" : "expire"));
    }
    const kv::WallTime now = wall_now();
    NodeStore& store = call.service.store;
    const auto left = store.time_left(call.word(1), now);
    // What is far beyond all times is over as well.
    const std::int64_t wanted = std::max(*count, -kMost / unit.count());
    if (left && !rules->allow(*left, wanted * unit)) return call.out.integer(0);
    if (*count <= 0) return call.out.integer(store.erase(call.word(1), now) ? 1 : 0);
    call.out.integer(store.expire(call.word(1), now + *count * unit, now) ? 1 : 0);
}

void expire(RespCall& call) { expire_in(call, std::chrono::seconds(1)); }
void pexpire(RespCall& call) { expire_in(call, milliseconds(1)); }

/// A block's life is its class's: no end is taken from it.
void persist(RespCall& call) {
    const kv::WallTime now = wall_now();
    NodeStore& store = call.service.store;
    const auto left = store.time_left(call.word(1), now);
    const bool ends = left && *left != milliseconds::max();
    if (!ends || kv::parse_block_name(call.word(1))) return call.out.integer(0);
    call.out.integer(store.expire(call.word(1), kv::kForever, now) ? 1 : 0);
}

void type(RespCall& call) {
    call.out.status(call.service.store.contains(call.word(1), wall_now()) ? "string" : "none");
}

// ---- SCAN -----------------------------------------------------------------------------------------

/// Whether `text` fits the glob `pattern`: * ? [a-z] [^a] and \ before any of them. No recursion: a star
/// that was passed is gone back to when what follows it doesn't fit.
class Glob {
public:
    explicit Glob(std::string_view pattern) : pattern_(pattern) {}

    [[nodiscard]] bool fits(std::string_view text) const {
        std::size_t at = 0;
        std::size_t i = 0;
        std::size_t star = std::string_view::npos;
        std::size_t from = 0;
        while (i < text.size()) {
            if (at < pattern_.size() && pattern_[at] == '*') {
                star = ++at;
                from = i;
            } else if (const std::size_t next = step(at, text[i]); next != 0) {
                at = next;
                ++i;
            } else if (star != std::string_view::npos) {
                at = star;
                i = ++from;
            } else {
                return false;
            }
        }
        while (at < pattern_.size() && pattern_[at] == '*') ++at;
        return at == pattern_.size();
    }

private:
    /// Where the pattern goes on if its part at `at` fits `c`, else 0.
    [[nodiscard]] std::size_t step(std::size_t at, char c) const {
        if (at >= pattern_.size()) return 0;
        if (pattern_[at] == '?') return at + 1;
        if (pattern_[at] == '[') return set_step(at + 1, c);
        if (pattern_[at] == '\\' && at + 1 < pattern_.size()) ++at;
        return pattern_[at] == c ? at + 1 : 0;
    }
    [[nodiscard]] std::size_t set_step(std::size_t at, char c) const {
        const bool inverted = at < pattern_.size() && pattern_[at] == '^';
        if (inverted) ++at;
        bool found = false;
        for (; at < pattern_.size() && pattern_[at] != ']'; ++at) {
            if (pattern_[at] == '\\' && at + 1 < pattern_.size()) ++at;
            const bool range =
                at + 2 < pattern_.size() && pattern_[at + 1] == '-' && pattern_[at + 2] != ']';
            const char last = range ? pattern_[at + 2] : pattern_[at];
            found = found || (pattern_[at] <= c && c <= last);
            if (range) at += 2;
        }
        return found != inverted ? std::min(at + 1, pattern_.size()) : 0;
    }

    std::string_view pattern_;
};

constexpr std::int64_t kScanMost = 4'096;  ///< Names at a time.

void scan(RespCall& call) {
    const auto cursor = parse_integer(call.word(1));
    if (!cursor || *cursor < 0) return call.out.error("ERR invalid cursor");
    std::optional<Glob> glob;
    std::int64_t count = 10;
    bool strings = true;
    for (std::size_t i = 2; i < call.words.size(); i += 2) {
        if (i + 1 == call.words.size()) return syntax_error(call.out);
        if (same_word(call.word(i), "match")) {
            glob.emplace(call.word(i + 1));
        } else if (same_word(call.word(i), "count")) {
            const auto wanted = parse_integer(call.word(i + 1));
            if (!wanted) return not_an_integer(call.out);
            if (*wanted < 1) return syntax_error(call.out);
            count = std::min<std::int64_t>(*wanted, kScanMost);
        } else if (same_word(call.word(i), "type")) {
            strings = same_word(call.word(i + 1), "string");
        } else {
            return syntax_error(call.out);
        }
    }
    std::vector<std::string> names;
    const std::uint64_t next = call.service.store.scan(
        static_cast<std::uint64_t>(*cursor), static_cast<std::size_t>(count), wall_now(),
        [&](std::string_view name) {
            if (strings && (!glob || glob->fits(name))) names.emplace_back(name);
        });
    call.out.array(2);
    call.out.text(std::to_string(next));
    call.out.array(names.size());
    for (const std::string& name : names) call.out.text(name);
}

/// KEYS answers for nodes with at most so many names: all others wait while it goes through them.
constexpr std::uint64_t kKeysMost = 100'000;

/// All of them in one answer, for people, and small nodes.
void keys(RespCall& call) {
    if (call.service.store.entries() > kKeysMost)
        return call.out.error("OOM too many names are here; SCAN goes through all of them");
    const Glob glob(call.word(1));
    const kv::WallTime now = wall_now();
    std::vector<std::string> names;
    std::uint64_t cursor = 0;
    do {
        cursor = call.service.store.scan(cursor, kScanMost, now, [&](std::string_view name) {
            if (glob.fits(name)) names.emplace_back(name);
        });
    } while (cursor != 0);
    // A scan may meet a name twice.
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    call.out.array(names.size());
    for (const std::string& name : names) call.out.text(name);
}

constexpr auto kCommands = std::to_array<RespCommand>({
    {"del", -2, true, 1, -1, 1, erase},
    {"exists", -2, false, 1, -1, 1, exists},
    {"expire", -3, true, 1, 1, 1, expire},
    {"keys", 2, false, 0, 0, 0, keys},
    {"kv.longest", -2, false, 1, -1, 1, longest},
    {"persist", 2, true, 1, 1, 1, persist},
    {"pexpire", -3, true, 1, 1, 1, pexpire},
    {"pttl", 2, false, 1, 1, 1, pttl},
    {"scan", -2, false, 0, 0, 0, scan},
    {"ttl", 2, false, 1, 1, 1, ttl},
    {"type", 2, false, 1, 1, 1, type},
    {"unlink", -2, true, 1, -1, 1, erase},
});

}  // namespace

std::span<const RespCommand> key_commands() { return kCommands; }

}  // namespace sluice::kvnode
