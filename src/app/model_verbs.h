#pragma once

// The verbs of `sluice model`, as functions on plain options. Each prints and answers an exit code.

#include <cstdint>
#include <string>
#include <vector>

#include "app/model_files.h"

namespace sluice::app {

struct ModelInfoOptions {
    std::string model;
    bool json = false;
};
[[nodiscard]] int model_info(const ModelInfoOptions& options);

struct ModelPackOptions {
    std::string model;
    bool json = false;
};
[[nodiscard]] int model_pack(const ModelPackOptions& options);

struct ModelTokenizeOptions {
    std::string model;
    std::string text;
    std::string text_file;  ///< Instead of `text` if not empty; "-" is standard input.
    bool control = false;   ///< The text is a template's: added tokens are recognised.
    bool pieces = false;    ///< A token a line, for reading, instead of JSON.
    bool json = false;      ///< Changes nothing; every command takes it.
};
[[nodiscard]] int model_tokenize(const ModelTokenizeOptions& options);

struct ModelDetokenizeOptions {
    std::string model;
    IdsOption ids;
    bool json = false;
};
[[nodiscard]] int model_detokenize(const ModelDetokenizeOptions& options);

struct ModelRenderOptions {
    std::vector<std::string> files;  ///< [model,] request
    std::string dialect;
    std::string profile = "recipe";
    bool keep_reasoning = false;
    bool json = false;
};
[[nodiscard]] int model_render(const ModelRenderOptions& options);

struct ModelLogitsOptions {
    std::string model;
    IdsOption ids;
    std::string out;
    std::string threads = "auto";
    bool json = false;
};
[[nodiscard]] int model_logits(const ModelLogitsOptions& options);

}  // namespace sluice::app
