#include "traffic/state.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <exception>
#include <set>
#include <stdexcept>

#include "base/hash.h"
#include "base/limits.h"
#include "traffic/plan_check.h"

namespace sluice::traffic {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

std::int64_t to_ms(WallTime time) {
    return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

/// Throws for times that no clock of ours tells.
WallTime from_ms(const json::value& value) {
    constexpr std::int64_t kYear2200 = 7'258'118'400'000;
    const auto ms = json::value_to<std::int64_t>(value);
    if (ms < 0 || ms > kYear2200) throw std::out_of_range("a time is none");
    return WallTime(milliseconds(ms));
}

std::string checksum(std::string_view text) { return to_hex(sha256(text)).substr(0, 32); }

/// Every pool that the plan's text names counts as known: whether it exists is checked elsewhere.
Result<Plan> parse_plan(const std::string& toml, const json::array& pools) {
    std::vector<std::string> names;
    for (const json::value& name : pools) names.push_back(json::value_to<std::string>(name));
    auto plan = read_plan(toml, "plan", names);
    if (!plan) return std::unexpected(plan.error().front());
    return std::move(*plan);
}

json::array pools_of(const Plan& plan) {
    std::set<std::string> names{plan.stable};
    for (const Split& split : plan.splits) names.insert(split.pool);
    for (const Shadow& shadow : plan.shadows) names.insert(shadow.pool);
    for (const Guard& guard : plan.guards) names.insert(guard.pool);
    json::array array;
    for (const std::string& name : names) array.emplace_back(name);
    return array;
}

Result<State> from_json(const json::object& object) {
    const auto text = [&](std::string_view key) {
        return json::value_to<std::string>(object.at(key));
    };
    auto plan = parse_plan(text("plan"), object.at("pools").as_array());
    if (!plan) return std::unexpected(plan.error());
    State state{.version = json::value_to<std::uint64_t>(object.at("version")),
                .plan = std::move(*plan),
                .config_digest = text("config_digest"),
                .latched = object.at("latched").as_bool(),
                .reason = text("reason"),
                .reason_kind = text("reason_kind"),
                .since = from_ms(object.at("since_ms"))};
    for (const auto& [pool, end] : object.at("lease_ends_ms").as_object())
        state.lease_ends.emplace(std::string(pool), from_ms(end));
    return state;
}

}  // namespace

std::string to_text(const State& state) {
    json::object leases;
    for (const auto& [pool, end] : state.lease_ends) leases[pool] = to_ms(end);
    const std::string content = json::serialize(json::object{{"version", state.version},
                                                             {"plan", to_toml(state.plan)},
                                                             {"pools", pools_of(state.plan)},
                                                             {"config_digest", state.config_digest},
                                                             {"latched", state.latched},
                                                             {"reason", state.reason},
                                                             {"reason_kind", state.reason_kind},
                                                             {"since_ms", to_ms(state.since)},
                                                             {"lease_ends_ms", std::move(leases)}});
    return checksum(content) + " " + content + "\n";
}

Result<State> parse_state(std::string_view text) {
    const auto corrupt = [](std::string_view why) {
        return std::unexpected(Error::corrupt(fmt::format("is not the state of a plan: {}", why)));
    };
    const std::size_t space = text.find(' ');
    if (text.size() > limits::kTrafficStateBytes || space == std::string_view::npos ||
        !text.ends_with('\n')) {
        return corrupt("it is cut off, or something else");
    }
    const std::string_view content = text.substr(space + 1, text.size() - space - 2);
    if (text.substr(0, space) != checksum(content)) return corrupt("its checksum is wrong");
    try {
        auto state = from_json(json::parse(content).as_object());
        if (!state) return corrupt(state.error().to_string());
        return state;
    } catch (const std::exception& error) {
        return corrupt(error.what());
    }
}

}  // namespace sluice::traffic
