#include "engine/model.h"

#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

/// Krill in q8_0 without the tensors whose names start with `prefix`.
std::filesystem::path krill_without(std::string_view prefix, const std::string& name) {
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

TEST(ModelTest, AFileThatLeavesItsMtpHeadOutLoadsWithoutOne) {
    const auto model = Model::load(krill_without("blk.6.", "no-head.gguf"));
    ASSERT_TRUE(model.has_value()) << model.error().to_string();
    EXPECT_EQ((*model)->mtp(), nullptr);
    EXPECT_NE(krill::model("krill-q8_0.gguf")->mtp(), nullptr);
    EXPECT_LT((*model)->weight_bytes(), krill::model("krill-q8_0.gguf")->weight_bytes());
    const auto ids = krill::reference("capital").all_ids();
    EXPECT_EQ(krill::all_logits(*model, ids, 512),
              krill::all_logits(krill::model("krill-q8_0.gguf"), ids, 512));
}

TEST(ModelTest, AnMtpHeadThatIsThereInPartIsRefusedByTheTensorsName) {
    for (const std::string name : {"blk.6.nextn.enorm.weight", "blk.6.ffn_down_exps.weight"}) {
        const auto model = Model::load(krill_without(name, "half-a-head.gguf"));
        ASSERT_FALSE(model.has_value());
        EXPECT_EQ(model.error().place(), name);
    }
}

}  // namespace
}  // namespace sluice::engine
