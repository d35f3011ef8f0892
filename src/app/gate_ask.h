#pragma once

// What `gate baseline` and `gate verify` share: a pool that is asked for answers.

#include <memory>
#include <string>
#include <vector>

#include "app/api_target.h"
#include "base/error.h"
#include "gates/baseline.h"
#include "gates/verifier.h"

namespace sluice::app {

struct AskOptions {
    ApiOptions api;
    std::string pool;  ///< Sent as x-sluice-pool; empty: the plan decides.
};

/// Declares the options of an API address, and --pool.
void add_ask_options(CLI::App& command, AskOptions& options);

/// A server that answers prompts, with what it takes to ask it.
class Asked {
public:
    /// Chooses a model. Errors: the address is wrong, or nobody answers there.
    [[nodiscard]] static Result<std::unique_ptr<Asked>> open(const AskOptions& options,
                                                             gates::VerifyOptions verify = {});

    [[nodiscard]] gates::Verifier& verifier() { return *verifier_; }
    [[nodiscard]] const std::string& model() const { return model_; }

private:
    Asked() = default;

    net::EventLoop loop_;
    net::HttpClient client_{loop_};
    std::string model_;
    std::unique_ptr<gates::Verifier> verifier_;
};

}  // namespace sluice::app
