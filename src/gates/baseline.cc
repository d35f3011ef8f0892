#include "gates/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "base/limits.h"

namespace sluice::gates {
namespace {

namespace json = boost::json;

constexpr std::int64_t kFormat = 1;

/// Calls `take(object, place)` for each line that is not empty.
template <class Take>
Result<void> each_line(std::string_view text, const std::string& name, Take&& take) {
    std::size_t rows = 0;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const std::string place = fmt::format("{}:{}", name, number);
        if (++rows > limits::kBaselineRows) {
            return std::unexpected(
                Error(ErrorCode::kOutOfRange,
                      fmt::format("is one row more than {}", limits::kBaselineRows), place));
        }
        json::error_code failure;
        const json::value value = json::parse(json::string_view(line.data(), line.size()), failure);
        if (failure || !value.is_object())
            return std::unexpected(Error::invalid("is no JSON object", place));
        if (auto taken = take(value.get_object()); !taken)
            return std::unexpected(taken.error().within(place));
    }
    if (rows == 0) return std::unexpected(Error::invalid("holds no rows", name));
    return {};
}

std::string id_of(const json::object& row, std::size_t index) {
    const json::value* id = row.if_contains("id");
    return id ? json::serialize(*id) : fmt::format("{}", index);
}

/// The text of a member, empty if it is absent or null.
Result<std::string> text_of(const json::object& row, std::string_view name) {
    const json::value* value = row.if_contains(name);
    if (!value || value->is_null()) return std::string();
    if (!value->is_string())
        return std::unexpected(Error::invalid("must be a string", std::string(name)));
    return std::string(value->get_string());
}

Result<BaselinePrompt> prompt_of(const json::object& row, std::size_t index) {
    BaselinePrompt prompt;
    prompt.id = id_of(row, index);
    if (const json::value* messages = row.if_contains("messages")) {
        if (!messages->is_array())
            return std::unexpected(Error::invalid("must be an array", "messages"));
        prompt.messages = json::serialize(*messages);
    }
    auto text = text_of(row, "prompt");
    if (!text) return std::unexpected(text.error());
    prompt.prompt = std::move(*text);
    if (prompt.messages.empty() == prompt.prompt.empty())
        return std::unexpected(Error::invalid("must hold either \"messages\" or \"prompt\""));
    json::object sampling;
    if (const json::value* given = row.if_contains("sampling_params")) {
        if (!given->is_object())
            return std::unexpected(Error::invalid("must be an object", "sampling_params"));
        sampling = given->get_object();
    }
    // Any number does, as long as it is the same each time.
    if (!sampling.contains("seed")) sampling["seed"] = 1'000'003 * (index + 1);
    prompt.sampling = json::serialize(sampling);
    return prompt;
}

Result<BaselineOutput> output_of(const json::object& row, std::size_t index) {
    BaselineOutput output;
    output.id = id_of(row, index);
    if (const json::value* error = row.if_contains("error"); error && !error->is_null())
        return std::unexpected(Error::invalid("is the row of a request that failed", "error"));
    if (!row.contains("text"))
        return std::unexpected(Error::invalid("must hold what was generated", "text"));
    auto text = text_of(row, "text");
    if (!text) return std::unexpected(text.error());
    auto reason = text_of(row, "finish_reason");
    if (!reason) return std::unexpected(reason.error());
    output.text = std::move(*text);
    output.finish_reason = std::move(*reason);
    if (const json::value* ids = row.if_contains("output_ids")) {
        const Error wrong = Error::invalid("must be an array of token ids", "output_ids");
        if (!ids->is_array()) return std::unexpected(wrong);
        for (const json::value& id : ids->get_array()) {
            if (!id.is_int64()) return std::unexpected(wrong);
            output.output_ids.push_back(id.get_int64());
        }
    }
    return output;
}

json::object to_object(const BaselineRow& row) {
    json::object object{{"id", json::parse(row.prompt.id)}};
    if (row.prompt.messages.empty()) {
        object["prompt"] = row.prompt.prompt;
    } else {
        object["messages"] = json::parse(row.prompt.messages);
    }
    object["sampling_params"] = json::parse(row.prompt.sampling);
    object["text"] = row.output.text;
    if (!row.output.output_ids.empty())
        object["output_ids"] =
            json::array(row.output.output_ids.begin(), row.output.output_ids.end());
    object["finish_reason"] = row.output.finish_reason;
    return object;
}

/// How `output` differs from `held`; empty if it doesn't.
std::string difference(const BaselineOutput& held, const BaselineOutput& output) {
    if (!held.output_ids.empty() && !output.output_ids.empty() &&
        held.output_ids != output.output_ids) {
        const auto [mine, other] = std::ranges::mismatch(held.output_ids, output.output_ids);
        return fmt::format("token {}", mine - held.output_ids.begin());
    }
    if (held.text != output.text) {
        const auto [mine, other] = std::ranges::mismatch(held.text, output.text);
        return fmt::format("text from byte {}", mine - held.text.begin());
    }
    if (held.finish_reason != output.finish_reason)
        return fmt::format("finish reason {}", output.finish_reason);
    return {};
}

}  // namespace

Result<std::vector<BaselinePrompt>> parse_prompts(std::string_view text, const std::string& name) {
    std::vector<BaselinePrompt> prompts;
    const auto read = each_line(text, name, [&](const json::object& row) -> Result<void> {
        auto prompt = prompt_of(row, prompts.size());
        if (!prompt) return std::unexpected(prompt.error());
        prompts.push_back(std::move(*prompt));
        return {};
    });
    if (!read) return std::unexpected(read.error());
    return prompts;
}

Result<std::vector<BaselineOutput>> parse_outputs(std::string_view text, const std::string& name) {
    std::vector<BaselineOutput> outputs;
    const auto read = each_line(text, name, [&](const json::object& row) -> Result<void> {
        auto output = output_of(row, outputs.size());
        if (!output) return std::unexpected(output.error());
        outputs.push_back(std::move(*output));
        return {};
    });
    if (!read) return std::unexpected(read.error());
    return outputs;
}

Result<std::vector<BaselineRow>> join(std::vector<BaselinePrompt> prompts,
                                      std::vector<BaselineOutput> outputs) {
    std::map<std::string, BaselineOutput> by_id;
    for (BaselineOutput& output : outputs) {
        const std::string id = output.id;
        if (!by_id.emplace(id, std::move(output)).second)
            return std::unexpected(Error::invalid("two outputs have this id", id));
    }
    std::vector<BaselineRow> rows;
    for (BaselinePrompt& prompt : prompts) {
        auto output = by_id.extract(prompt.id);
        if (output.empty())
            return std::unexpected(Error::invalid("this prompt has no output", prompt.id));
        rows.push_back({.prompt = std::move(prompt), .output = std::move(output.mapped())});
    }
    if (!by_id.empty())
        return std::unexpected(Error::invalid("this output has no prompt", by_id.begin()->first));
    return rows;
}

Result<std::string> parse_versions(std::string_view text) {
    json::error_code failure;
    const json::value value = json::parse(json::string_view(text.data(), text.size()), failure);
    if (failure || !value.is_object())
        return std::unexpected(Error::invalid("must be a JSON object"));
    return json::serialize(value);
}

std::string to_json_lines(const Baseline& baseline) {
    json::object header{{"baseline", kFormat},
                        {"name", baseline.name},
                        {"created", baseline.created},
                        {"model", baseline.model},
                        {"versions", json::parse(baseline.versions)}};
    std::string text = json::serialize(header) + "\n";
    for (const BaselineRow& row : baseline.rows) text += json::serialize(to_object(row)) + "\n";
    return text;
}

Result<Baseline> parse_baseline(std::string_view text, const std::string& name) {
    Baseline baseline;
    bool header = true;
    const auto read = each_line(text, name, [&](const json::object& row) -> Result<void> {
        if (!std::exchange(header, false)) {
            auto prompt = prompt_of(row, baseline.rows.size());
            if (!prompt) return std::unexpected(prompt.error());
            auto output = output_of(row, baseline.rows.size());
            if (!output) return std::unexpected(output.error());
            baseline.rows.push_back({std::move(*prompt), std::move(*output)});
            return {};
        }
        const json::value* format = row.if_contains("baseline");
        if (!format || !format->is_int64() || format->get_int64() != kFormat)
            return std::unexpected(Error::unsupported(
                "is no baseline of this version; `sluice gate baseline save` makes one"));
        baseline.name = text_of(row, "name").value_or("");
        baseline.created = text_of(row, "created").value_or("");
        baseline.model = text_of(row, "model").value_or("");
        const json::value* versions = row.if_contains("versions");
        baseline.versions =
            versions && versions->is_object() ? json::serialize(*versions) : std::string("{}");
        return {};
    });
    if (!read) return std::unexpected(read.error());
    if (baseline.rows.empty()) return std::unexpected(Error::invalid("holds no prompts", name));
    return baseline;
}

std::vector<GateItem> compare(const Baseline& baseline, const std::vector<BaselineOutput>& outputs,
                              const std::string& subject, double min_equal, std::size_t shown) {
    std::map<std::string_view, const BaselineOutput*> by_id;
    for (const BaselineOutput& output : outputs) by_id.emplace(output.id, &output);
    std::vector<GateItem> items;
    std::size_t equal = 0;
    for (const BaselineRow& row : baseline.rows) {
        const auto found = by_id.find(row.prompt.id);
        const std::string differs =
            found == by_id.end() ? "no answer" : difference(row.output, *found->second);
        if (differs.empty()) ++equal;
        if (differs.empty() || items.size() >= shown) continue;
        items.push_back({.subject = subject,
                         .item = "row " + row.prompt.id,
                         .required = "as the baseline",
                         .found = "differs: " + differs,
                         .verdict = Verdict::kUnknown});
    }
    const double share = static_cast<double>(equal) / static_cast<double>(baseline.rows.size());
    const bool good = share >= min_equal;
    items.push_back({.subject = subject,
                     .item = "equal answers",
                     .required = fmt::format(">= {:.4g} %", 100.0 * min_equal),
                     .found = fmt::format("{} of {}", equal, baseline.rows.size()),
                     .verdict = good ? Verdict::kPass : Verdict::kFail});
    return items;
}

std::string_view request_path(const BaselinePrompt& prompt) {
    return prompt.messages.empty() ? "/completions" : "/chat/completions";
}

std::string request_body(const BaselinePrompt& prompt, std::string_view model) {
    json::object body{{"model", model}};
    if (prompt.messages.empty()) {
        body["prompt"] = prompt.prompt;
    } else {
        body["messages"] = json::parse(prompt.messages);
    }
    const json::value sampling = json::parse(prompt.sampling);
    for (const auto& [name, value] : sampling.get_object()) {
        // The protocol has other names for these two.
        if (name == "max_new_tokens") {
            body["max_tokens"] = value;
        } else if (name == "min_new_tokens") {
            body["min_tokens"] = value;
        } else {
            body[name] = value;
        }
    }
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    return json::serialize(body);
}

}  // namespace sluice::gates
