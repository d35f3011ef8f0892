#include "engine/model.h"

#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

TEST(ModelTest, AFileThatLeavesItsMtpHeadOutLoadsWithoutOne) {
    const auto model = krill::headless_model();
    EXPECT_EQ(model->mtp(), nullptr);
    EXPECT_NE(krill::model("krill-q8_0.gguf")->mtp(), nullptr);
    EXPECT_LT(model->weight_bytes(), krill::model("krill-q8_0.gguf")->weight_bytes());
    const auto ids = krill::reference("capital").all_ids();
    EXPECT_EQ(krill::all_logits(model, ids, 512),
              krill::all_logits(krill::model("krill-q8_0.gguf"), ids, 512));
}

TEST(ModelTest, AnMtpHeadThatIsThereInPartIsRefusedByTheTensorsName) {
    for (const std::string name : {"blk.6.nextn.enorm.weight", "blk.6.ffn_down_exps.weight"}) {
        const auto model = Model::load(krill::file_without(name, "half-a-head.gguf"));
        ASSERT_FALSE(model.has_value());
        EXPECT_EQ(model.error().place(), name);
    }
}

}  // namespace
}  // namespace sluice::engine
