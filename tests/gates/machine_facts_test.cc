#include "gates/machine_facts.h"

#include <gtest/gtest.h>

namespace sluice::gates {
namespace {

TEST(MachineFactsTest, AVersionIsFoundInWhatToolsSay) {
    EXPECT_EQ(first_version("gcc (Debian 12.2.0-14+deb12u1) 12.2.1"), "12.2.0");
    EXPECT_EQ(first_version("Python 3.12.4\n"), "3.12.4");
    EXPECT_EQ(first_version("release 13.0, V13.0.48"), "13.0");
    EXPECT_EQ(first_version("13"), "");
    EXPECT_EQ(first_version("no number here."), "");
    EXPECT_EQ(first_version(""), "");
}

TEST(MachineFactsTest, VersionsCompareByNumber) {
    EXPECT_TRUE(at_least("13.2.0", "13"));
    EXPECT_TRUE(at_least("13", "13.0"));
    EXPECT_TRUE(at_least("9.10", "9.2"));
    EXPECT_FALSE(at_least("9.1", "9.2"));
    EXPECT_FALSE(at_least("12.9.9", "13"));
    EXPECT_FALSE(at_least("", "1"));
}

TEST(MachineFactsTest, NvidiaCardsAreReadFromTheirTool) {
    const auto gpus = parse_nvidia_smi(
        "NVIDIA B200, 10.0, 575.57.08, 183359\nNVIDIA B200, 10.0, 575.57.08, 183359\n");
    ASSERT_EQ(gpus.size(), 2U);
    EXPECT_EQ(gpus[0].name, "NVIDIA B200");
    EXPECT_EQ(gpus[0].architecture, "sm_100");
    EXPECT_EQ(gpus[0].driver, "575.57.08");
    EXPECT_EQ(gpus[0].memory_bytes, 183359ULL * 1024 * 1024);
    EXPECT_TRUE(parse_nvidia_smi("NVIDIA-SMI has failed because it couldn't communicate").empty());
}

TEST(MachineFactsTest, AscendChipsAreReadFromTheirTool) {
    const auto chips = parse_npu_smi(
        "+-----------------------------------------------------------+\n"
        "| NPU   Name                | Health        | Power(W)      |\n"
        "| Chip                      | Bus-Id        | AICore(%)     |\n"
        "+===========================+===============+===============+\n"
        "| 0     950PR               | OK            | 98.2          |\n"
        "| 0                         | 0000:C1:00.0  | 0             |\n");
    ASSERT_EQ(chips.size(), 1U);
    EXPECT_EQ(chips[0].vendor, "ascend");
    EXPECT_EQ(chips[0].architecture, "950PR");
}

TEST(MachineFactsTest, TheProcessorIsReadFromTheKernel) {
    MachineFacts facts;
    parse_cpuinfo(
        "processor\t: 0\nmodel name\t: Some CPU @ 2.80GHz\nflags\t\t: fpu avx2 fma\n\n"
        "processor\t: 1\nmodel name\t: Some CPU @ 2.80GHz\nflags\t\t: fpu avx2 fma\n",
        facts);
    EXPECT_EQ(facts.cpu, "Some CPU @ 2.80GHz");
    EXPECT_EQ(facts.cpus, 2U);
    EXPECT_TRUE(facts.has_feature("avx2"));
    EXPECT_FALSE(facts.has_feature("avx"));
}

TEST(MachineFactsTest, ThisMachineHasASystemAndProcessors) {
    const MachineFacts facts = collect_machine_facts();
    EXPECT_EQ(facts.system, "Linux");
    EXPECT_GE(facts.cpus, 1U);
    EXPECT_GT(facts.memory_bytes, 0U);
    EXPECT_NE(to_json(facts).find("\"system\":\"Linux\""), std::string::npos);
}

}  // namespace
}  // namespace sluice::gates
