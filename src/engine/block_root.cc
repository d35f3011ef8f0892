#include "engine/block_root.h"

namespace sluice::engine {

kv::BlockKeyRoot block_root(const Model& model, std::size_t block_tokens,
                            const std::string& build) {
    const std::string layout = "layer-major rows";
    return {.fingerprint = model.fingerprint(),
            .numerics_id = model.numerics_id(),
            .component = "mla",
            .shard = 0,
            .layout = build.empty() ? layout : layout + ", build " + build,
            .dtype = "f32",
            .block_tokens = static_cast<std::uint32_t>(block_tokens),
            .salt = {}};
}

}  // namespace sluice::engine
