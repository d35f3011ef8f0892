#pragma once

// How `sluice ctl kv` shows the gateway's answers to people.

#include <boost/json/object.hpp>
#include <string>

namespace sluice::app {

/// Of GET /admin/kv/nodes: the epoch and the nodes.
[[nodiscard]] std::string kv_members_text(const boost::json::object& members);

/// Of POST /admin/kv/nodes: the same, and where nobody answers.
[[nodiscard]] std::string kv_added_text(const boost::json::object& answer);

/// Of GET /admin/kv/status: tiers by holder, then what each tenant and class has.
[[nodiscard]] std::string kv_status_text(const boost::json::object& status);

/// Of an order: what each holder did with it; `done` and `failed` say what that is called, and an empty
/// `failed` is not worth a word.
[[nodiscard]] std::string kv_results_text(const boost::json::object& results, std::string_view done,
                                          std::string_view failed);

}  // namespace sluice::app
