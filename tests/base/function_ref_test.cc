#include "base/function_ref.h"

namespace sluice {
namespace {

int call_with(FunctionRef<int(int)> function, int value) { return function(value); }

int doubled(int value) { return value * 2; }

TEST(FunctionRefTest, CallsWhatItWasMadeFrom) {
    int calls = 0;
    const auto counting = [&calls](int value) {
        ++calls;
        return value + 1;
    };
    EXPECT_EQ(call_with(counting, 1), 2);
    EXPECT_EQ(call_with([](int value) { return -value; }, 3), -3);
    EXPECT_EQ(call_with(std::function<int(int)>(doubled), 4), 8);
    EXPECT_EQ(calls, 1);
}

TEST(FunctionRefTest, CarriesReferencesThrough) {
    std::string text;
    const auto append = [](std::string& to, std::unique_ptr<int> number) {
        to += std::to_string(*number);
    };
    const FunctionRef<void(std::string&, std::unique_ptr<int>)> view = append;
    view(text, std::make_unique<int>(7));
    EXPECT_EQ(text, "7");
}

}  // namespace
}  // namespace sluice
