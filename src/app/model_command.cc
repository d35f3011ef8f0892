#include <CLI/CLI.hpp>
#include <memory>

#include "app/command.h"
#include "app/model_verbs.h"

namespace sluice::app {
namespace {

constexpr const char* kModelHelp = "A GGUF file, or `krill`, the built-in model";
constexpr const char* kTokenizerHelp = "A GGUF file, a tokenizer.json, or `krill`";

/// Declares one verb and remembers what it runs.
template <class Options, class Declare>
CLI::App* add_verb(CLI::App& command, const char* name, const char* summary, Declare declare,
                   int (*verb)(const Options&), const std::shared_ptr<Run>& chosen) {
    auto options = std::make_shared<Options>();
    CLI::App* sub = command.add_subcommand(name, summary);
    declare(*sub, *options);
    sub->callback([=] { *chosen = [=] { return verb(*options); }; });
    return sub;
}

void add_ids(CLI::App& sub, IdsOption& ids) {
    CLI::Option_group* given = sub.add_option_group("ids");
    given->add_option("--ids", ids.text, "Token ids, separated by commas");
    given->add_option("--ids-file", ids.file, "A file with them; - is standard input");
    given->require_option(1);
}

void declare_info(CLI::App& sub, ModelInfoOptions& options) {
    sub.add_option("model", options.model, kModelHelp)->required();
    sub.add_flag("--json", options.json, "Print one JSON object");
}

void declare_pack(CLI::App& sub, ModelPackOptions& options) {
    sub.add_option("model", options.model, kModelHelp)->required();
    sub.add_flag("--json", options.json, "Print one JSON object: file, bytes, seconds, new");
}

void declare_tokenize(CLI::App& sub, ModelTokenizeOptions& options) {
    sub.add_option("model", options.model, kTokenizerHelp)->required();
    CLI::Option_group* text = sub.add_option_group("text");
    text->add_option("--text", options.text, "The text");
    text->add_option("--text-file", options.text_file, "A file with it; - is standard input");
    text->require_option(1);
    sub.add_flag("--control", options.control,
                 "Recognise added tokens; without it the text is a user's and none is");
    CLI::Option* pieces =
        sub.add_flag("--pieces", options.pieces, "Print a line a token: its id and its text");
    sub.add_flag("--json", options.json, "Print one JSON object: ids (the default)")
        ->excludes(pieces);
}

void declare_detokenize(CLI::App& sub, ModelDetokenizeOptions& options) {
    sub.add_option("model", options.model, kTokenizerHelp)->required();
    add_ids(sub, options.ids);
    sub.add_flag("--json", options.json, "Print one JSON object: text");
}

void declare_render(CLI::App& sub, ModelRenderOptions& options) {
    sub.add_option("files", options.files,
                   "[MODEL] REQUEST: the model whose dialect and tokenizer are used, and the body "
                   "of a chat request; - is standard input")
        ->required()
        ->expected(1, 2);
    sub.add_option("--dialect", options.dialect, "v4.1, instead of the model's own");
    sub.add_option("--profile", options.profile,
                   "Whose rules hold where two encoders of the dialect differ")
        ->check(CLI::IsMember({"recipe", "reference"}))
        ->capture_default_str();
    sub.add_flag("--keep-reasoning", options.keep_reasoning,
                 "Keep the thinking of earlier turns (reference profile)");
    sub.add_flag("--json", options.json,
                 "Print one JSON object: prompt, and ids where a model is given");
}

void declare_logits(CLI::App& sub, ModelLogitsOptions& options) {
    sub.add_option("model", options.model, kModelHelp)->required();
    add_ids(sub, options.ids);
    sub.add_option("--out", options.out, "Gets row-major f32 [positions, vocabulary]")->required();
    sub.add_option("--threads", options.threads, "A number, or auto")->capture_default_str();
    sub.add_flag("--json", options.json, "Print one JSON object: positions, vocabulary, out");
}

}  // namespace

Run define_model(CLI::App& command) {
    command.require_subcommand(1);
    auto chosen = std::make_shared<Run>();
    add_verb<ModelInfoOptions>(command, "info", "What a checkpoint holds and what it costs",
                               declare_info, model_info, chosen);
    add_verb<ModelTokenizeOptions>(command, "tokenize", "Text to token ids; no BOS is added",
                                   declare_tokenize, model_tokenize, chosen);
    add_verb<ModelDetokenizeOptions>(command, "detokenize", "Token ids to text, byte for byte",
                                     declare_detokenize, model_detokenize, chosen);
    add_verb<ModelRenderOptions>(command, "render", "A chat request to the prompt the model sees",
                                 declare_render, model_render, chosen);
    add_verb<ModelLogitsOptions>(command, "logits", "The model's logits at every position",
                                 declare_logits, model_logits, chosen);
    add_verb<ModelPackOptions>(
        command, "pack", "Packed weights ahead of a model's first start; SLUICE_PACKED says where",
        declare_pack, model_pack, chosen);
    return [chosen] { return (*chosen)(); };
}

}  // namespace sluice::app
