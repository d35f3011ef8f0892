// `sluice model render`.

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_from.hpp>
#include <optional>

#include "app/command.h"
#include "app/model_verbs.h"
#include "base/limits.h"
#include "checkpoint/gguf_file.h"
#include "gateway/model_vocabulary.h"
#include "protocol/chat_request.h"
#include "protocol/errors.h"
#include "protocol/prompt_tokens.h"

namespace sluice::app {
namespace {

/// What rendering needs to know of a model.
struct Source {
    std::string dialect;
    std::optional<text::Tokenizer> tokenizer;
};

Result<Source> read_source(const std::string& model) {
    auto tokenizer = gateway::load_tokenizer(model);
    if (!tokenizer) return std::unexpected(tokenizer.error());
    Source source{.dialect = {}, .tokenizer = *std::move(tokenizer)};
    const auto path = gateway::find_model(model);
    const auto file = path ? checkpoint::GgufFile::open(*path) : std::unexpected(path.error());
    // A tokenizer.json says nothing of dialects.
    if (file) source.dialect = file->find_string("sluice.dialect").value_or("");
    return source;
}

Result<protocol::Prompt> render(const ModelRenderOptions& options, std::string_view dialect,
                                std::string_view body) {
    auto request = protocol::parse_chat_request(
        body, {.thinking = protocol::Thinking::kOff, .model = std::string(gateway::kBuiltInModel)});
    if (!request) return std::unexpected(request.error());
    return gateway::render(
        dialect, request->conversation,
        {.profile = options.profile == "reference" ? protocol::Profile::kReference
                                                   : protocol::Profile::kRecipe,
         .past_reasoning = options.keep_reasoning ? protocol::PastReasoning::kKeep
                                                  : protocol::PastReasoning::kDrop});
}

int refuse(const ModelRenderOptions& options, const Error& error) {
    if (!options.json) return fail(kFailed, error);
    print(protocol::to_json(protocol::to_api_error(error)) + "\n");
    return kFailed;
}

}  // namespace

int model_render(const ModelRenderOptions& options) {
    const bool has_model = options.files.size() == 2;
    if (!has_model && options.dialect.empty()) {
        return fail(kWrongUse, "render needs a model before the request, or --dialect v4.1");
    }
    Source source;
    if (has_model) {
        auto read = read_source(options.files.front());
        if (!read) return fail(kCannotStart, read.error());
        source = *std::move(read);
    }
    if (!options.dialect.empty()) source.dialect = options.dialect;
    if (source.dialect.empty()) {
        return fail(kWrongUse,
                    fmt::format("{} names no dialect; add --dialect v4.1", options.files.front()));
    }
    const auto body = read_input(options.files.back(), limits::kBodyBytes);
    if (!body) return fail(kCannotStart, body.error());

    const auto prompt = render(options, source.dialect, *body);
    if (!prompt) return refuse(options, prompt.error());
    if (!options.json) {
        print_bytes(prompt->text());
        return kDone;
    }
    boost::json::object answer{{"prompt", prompt->text()}};
    if (source.tokenizer) {
        const auto ids = protocol::tokenize(*prompt, *source.tokenizer);
        if (!ids) return refuse(options, ids.error());
        answer["ids"] = boost::json::value_from(*ids);
    }
    print(boost::json::serialize(answer) + "\n");
    return kDone;
}

}  // namespace sluice::app
