#include "dispatch/engine_kind.h"

#include <algorithm>
#include <array>

namespace sluice::dispatch {
namespace {

constexpr auto kKinds = std::to_array<EngineKind>({
    {"native", Resume::kExact,
     "its tokens depend on the prompt, the parameters, the seed and the model alone; another "
     "worker of the same fingerprint and numerics computes the journal again and draws on"},
    {"openai", Resume::kRefused,
     "what comes is text: which tokens it was made of, and how the next would be drawn, is not "
     "ours to know"},
    {"vllm", Resume::kRefused,
     "reached through its OpenAI API, which takes no tokens already answered and whose draws "
     "change with the batch"},
    {"sglang", Resume::kRefused,
     "reached through its OpenAI API, which takes no tokens already answered and whose draws "
     "change with the batch"},
    {"llama.cpp", Resume::kRefused,
     "reached through its OpenAI API; a slot's random state can't be carried to another server"},
});

}  // namespace

std::string_view to_string(Resume resume) {
    switch (resume) {
        case Resume::kExact: return "exact";
        case Resume::kApproximate: return "approximate";
        case Resume::kRefused: return "refused";
    }
    return "refused";
}

std::span<const EngineKind> engine_kinds() { return kKinds; }

const EngineKind& engine_kind(std::string_view name) {
    const auto found = std::ranges::find(kKinds, name, &EngineKind::name);
    return found == kKinds.end() ? kKinds[1] : *found;
}

Rules rules_of(std::string_view name) {
    if (engine_kind(name).resume != Resume::kRefused) return {};
    // Other people's engines may be many behind one address: what failed there is not asked again.
    return {.resumable = false, .tried = routing::Tried::Rule::kExclude, .losses_max = 3};
}

}  // namespace sluice::dispatch
