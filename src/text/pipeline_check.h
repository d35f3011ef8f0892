#pragma once

// Is the pipeline that a tokenizer.json describes the one that Sluice runs?
//
// A tokenizer that differs in one flag gives plausible, wrong ids, and nothing later would notice.
// So each part that decides an id has to be as DeepSeek V3's file has it, or stand at a value
// under which it does nothing. The post-processor is not looked at: it adds tokens only when asked
// for, and Sluice never asks.

#include <boost/json/fwd.hpp>

#include "base/error.h"

namespace sluice::text {

/// Normalizer, pre-tokenizer, decoder, truncation and padding of the whole file.
[[nodiscard]] Result<void> check_pipeline(const boost::json::object& file);

/// The model's type and the options beside its vocabulary and merges.
[[nodiscard]] Result<void> check_model(const boost::json::object& model);

}  // namespace sluice::text
