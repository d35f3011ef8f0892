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

std::vector<float> read_floats(const boost::json::value& name) {
    const std::string raw = read_file(test::krill_file(boost::json::value_to<std::string>(name)));
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
}

/// A pool of `layers` layers, and blocks of it for `tokens` tokens of one sequence.
struct OneSequence {
    OneSequence(const checkpoint::HyperParameters& p, std::size_t layers, std::size_t tokens)
        : pool(std::move(*KvPool::create({.blocks = tokens / 64 + 1,
                                          .block_tokens = 64,
                                          .layers = layers,
                                          .row_floats = p.kv_rank + p.rope}))) {
        while (blocks.size() * 64 < tokens) blocks.push_back(*pool.allocate());
    }

    KvPool pool;
    std::vector<BlockIndex> blocks;
};

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
                            .logits = {},
                            .mtp_logits = {}};
        if (const auto* logits = entry.as_object().if_contains("logits")) {
            reference.logits = read_floats(logits->at("file"));
            reference.mtp_logits = read_floats(logits->at("mtp_file"));
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

test::TemporaryFile file_without(std::string_view prefix, const std::string& name) {
    const auto file = checkpoint::GgufFile::open(test::krill_file("krill-q8_0.gguf"));
    EXPECT_TRUE(file.has_value());
    test::GgufBuilder builder;
    for (const checkpoint::MetadataEntry& entry : file->metadata())
        builder.add_raw(entry.key, entry.raw);
    for (const checkpoint::TensorView& tensor : file->tensors()) {
        if (tensor.name.starts_with(prefix)) continue;
        builder.add_tensor(tensor.name, tensor.raw_type, tensor.shape,
                           {tensor.data.begin(), tensor.data.end()});
    }
    return test::write_temporary(name, builder.build());
}

std::shared_ptr<const Model> headless_model() {
    auto loaded = Model::load(file_without("blk.6.", "krill-without-head.gguf"));
    SLUICE_ASSERT(loaded.has_value());
    return *loaded;
}

std::vector<float> all_logits(const std::shared_ptr<const Model>& model,
                              const std::vector<TokenId>& ids, std::size_t chunk,
                              std::size_t threads) {
    const checkpoint::HyperParameters& p = model->parameters();
    ThreadTeam team(threads);
    Forward forward(model, team, std::min(chunk, ids.size()));
    OneSequence sequence(p, p.layers, ids.size());
    std::vector<float> logits(ids.size() * p.vocabulary);
    for (std::size_t first = 0; first < ids.size(); first += chunk) {
        Batch batch;
        batch.block_tables = {sequence.blocks};
        for (std::size_t i = first; i < std::min(ids.size(), first + chunk); ++i)
            batch.rows.push_back({.token = ids[i],
                                  .position = static_cast<std::uint32_t>(i),
                                  .sequence = 0,
                                  .wants_logits = true});
        forward.run(batch, sequence.pool, [&](std::size_t row, std::span<float> values) {
            std::ranges::copy(
                values, logits.begin() + static_cast<std::ptrdiff_t>((first + row) * p.vocabulary));
        });
    }
    return logits;
}

std::vector<float> all_mtp_logits(const std::shared_ptr<const Model>& model,
                                  const std::vector<TokenId>& ids, std::size_t chunk) {
    const checkpoint::HyperParameters& p = model->parameters();
    ThreadTeam team(1);
    Forward forward(model, team, ids.size());
    OneSequence sequence(p, p.layers, ids.size());
    Batch batch;
    batch.block_tables = {sequence.blocks};
    for (std::size_t i = 0; i < ids.size(); ++i)
        batch.rows.push_back({.token = ids[i], .position = static_cast<std::uint32_t>(i)});
    forward.run(batch, sequence.pool, [](std::size_t, std::span<float>) {});
    std::vector<float> hidden(ids.size() * p.width);
    for (std::size_t i = 0; i < ids.size(); ++i)
        forward.hidden(i, std::span(hidden).subspan(i * p.width, p.width));

    OneSequence head(p, 1, ids.size());
    std::vector<float> logits((ids.size() - 1) * p.vocabulary);
    for (std::size_t first = 0; first + 1 < ids.size(); first += chunk) {
        const std::size_t count = std::min(chunk, ids.size() - 1 - first);
        batch.rows.clear();
        batch.block_tables = {head.blocks};
        for (std::size_t i = first; i < first + count; ++i)
            batch.rows.push_back({.token = ids[i + 1],
                                  .position = static_cast<std::uint32_t>(i),
                                  .wants_logits = true});
        forward.run_mtp(batch, std::span(hidden).subspan(first * p.width, count * p.width),
                        head.pool, [&](std::size_t row, std::span<float> values) {
                            std::ranges::copy(
                                values, logits.begin() + static_cast<std::ptrdiff_t>((first + row) *
                                                                                     p.vocabulary));
                        });
    }
    return logits;
}

}  // namespace sluice::engine::krill
