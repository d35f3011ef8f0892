#include "text/unicode_classes.h"

#include <boost/json.hpp>

#include "tests/text/fixtures.h"

namespace sluice::text {
namespace {

TEST(UnicodeClassesTest, TheTableIsUnicode16WithTheReferencesIdeaOfWhiteSpace) {
    EXPECT_EQ(unicode_class('a'), UnicodeClass::kLetterOrMark);
    EXPECT_EQ(unicode_class('7'), UnicodeClass::kNumber);
    EXPECT_EQ(unicode_class('_'), UnicodeClass::kPunctuationOrSymbol);
    EXPECT_EQ(unicode_class('\n'), UnicodeClass::kSpace);
    EXPECT_EQ(unicode_class(0x85), UnicodeClass::kSpace);
    EXPECT_EQ(unicode_class(0xFEFF), UnicodeClass::kOther);
    EXPECT_EQ(unicode_class(0x301), UnicodeClass::kLetterOrMark);
    EXPECT_EQ(unicode_class(0x1C89), UnicodeClass::kLetterOrMark);   // New in Unicode 16.
    EXPECT_EQ(unicode_class(0x105C0), UnicodeClass::kLetterOrMark);  // New in Unicode 16.
    EXPECT_EQ(unicode_class(0x10FFFF), UnicodeClass::kOther);
    EXPECT_EQ(unicode_class(0x110000), UnicodeClass::kOther);
    EXPECT_EQ(unicode_class(0xFFFFFFFF), UnicodeClass::kOther);
}

TEST(UnicodeClassesTest, EveryCodePointHasTheClassThatTheReferenceGivesIt) {
    const auto path = data_file("tokenizer/pretok_classes_unicode.json");
    if (!path) GTEST_SKIP() << "the probe of the reference's classes is not here";
    const auto probe = boost::json::parse(read_file(*path));
    const std::map<std::string, UnicodeClass> names = {{"N", UnicodeClass::kNumber},
                                                       {"LM", UnicodeClass::kLetterOrMark},
                                                       {"PS", UnicodeClass::kPunctuationOrSymbol},
                                                       {"S", UnicodeClass::kSpace},
                                                       {"O", UnicodeClass::kOther}};
    std::size_t checked = 0;
    for (const auto& [name, expected] : names) {
        for (const auto& range : probe.at(name).as_array()) {
            const auto last = static_cast<char32_t>(range.at(1).as_int64());
            for (auto at = static_cast<char32_t>(range.at(0).as_int64()); at <= last; ++at) {
                ASSERT_EQ(unicode_class(at), expected) << name << " " << static_cast<int>(at);
                ++checked;
            }
        }
    }
    EXPECT_EQ(checked, 0x110000U - 2048U);  // All but the surrogates.
}

}  // namespace
}  // namespace sluice::text
