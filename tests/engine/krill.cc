#include "tests/engine/krill.h"

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <map>

#include "base/assert.h"
#include "engine/forward.h"

namespace sluice::engine::krill {
namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    SLUICE_ASSERT(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<TokenId> ids(const boost::json::value& array) {
    return boost::json::value_to<std::vector<TokenId>>(array);
}

}  // namespace

std::vector<TokenId> Reference::all_ids() const {
    std::vector<TokenId> all = prompt_ids;
    all.insert(all.end(), greedy_ids.begin(), greedy_ids.end());
    return all;
}

std::vector<Reference> references() {
    std::vector<Reference> result;
    const auto json = boost::json::parse(read_file(test::krill_file("reference.json")));
    for (const auto& entry : json.as_array()) {
        Reference reference{.name = boost::json::value_to<std::string>(entry.at("name")),
                            .prompt_ids = ids(entry.at("prompt_ids")),
                            .greedy_ids = ids(entry.at("greedy_ids")),
                            .logits = {}};
        if (const auto* logits = entry.as_object().if_contains("logits")) {
            const auto file = boost::json::value_to<std::string>(logits->at("file"));
            const std::string raw = read_file(test::krill_file(file));
            reference.logits.resize(raw.size() / sizeof(float));
            std::memcpy(reference.logits.data(), raw.data(), raw.size());
        }
        result.push_back(std::move(reference));
    }
    return result;
}

Reference reference(const std::string& name) {
    for (Reference& each : references())
        if (each.name == name) return std::move(each);
    SLUICE_ASSERT(false && "no such reference");
    return {};
}

std::shared_ptr<const Model> model(const std::string& file) {
    static std::map<std::string, std::shared_ptr<const Model>> loaded;
    std::shared_ptr<const Model>& entry = loaded[file];
    if (!entry) {
        auto result = Model::load(test::krill_file(file));
        SLUICE_ASSERT(result.has_value());
        entry = *result;
    }
    return entry;
}

std::vector<float> all_logits(const std::shared_ptr<const Model>& model,
                              const std::vector<TokenId>& ids, std::size_t chunk,
                              std::size_t threads) {
    const checkpoint::HyperParameters& p = model->parameters();
    ThreadTeam team(threads);
    Forward forward(model, team, std::min(chunk, ids.size()));
    auto pool = KvPool::create({.blocks = ids.size() / 64 + 1,
                                .block_tokens = 64,
                                .layers = p.layers,
                                .row_floats = p.kv_rank + p.rope});
    SLUICE_ASSERT(pool.has_value());
    std::vector<BlockIndex> blocks;
    while (blocks.size() * 64 < ids.size()) blocks.push_back(*pool->allocate());
    std::vector<float> logits(ids.size() * p.vocabulary);
    for (std::size_t first = 0; first < ids.size(); first += chunk) {
        Batch batch;
        batch.block_tables = {blocks};
        for (std::size_t i = first; i < std::min(ids.size(), first + chunk); ++i)
            batch.rows.push_back({.token = ids[i],
                                  .position = static_cast<std::uint32_t>(i),
                                  .sequence = 0,
                                  .wants_logits = true});
        forward.run(batch, *pool, [&](std::size_t row, std::span<float> values) {
            std::ranges::copy(
                values, logits.begin() + static_cast<std::ptrdiff_t>((first + row) * p.vocabulary));
        });
    }
    pool->release(blocks);
    return logits;
}

}  // namespace sluice::engine::krill
