#include "base/hardware.h"

#include <thread>

namespace sluice {
namespace {

TEST(HardwareTest, TheCpuHasANameAndItsThreads) {
    const std::string name = cpu_name();
    EXPECT_TRUE(name.starts_with(std::to_string(std::thread::hardware_concurrency()) + " x "));
    EXPECT_GT(name.size(), 6U);
    EXPECT_EQ(name.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace sluice
