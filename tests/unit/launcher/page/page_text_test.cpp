#include "launcher/page/page_text.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/page/page_html.hpp"

namespace drun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageTextTest, WithoutATokenItIsTheFile) {
  EXPECT_EQ(page_text(false), page_html());
}

// Its script hides the button unless the page says so.
TEST(PageTextTest, OnlyAnAgentWithATokenOffersStacks) {
  const std::string page = page_text(true);
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\" data-stacks=\"yes\">"));
  EXPECT_THAT(page, Not(HasSubstr("data-stacks=\"no\"")));
  EXPECT_THAT(page, HasSubstr("dataset.stacks !== \"yes\""));
  EXPECT_EQ(page.size(), page_html().size() + 1);
}

// Neither an address nor what a browser stores has it.
TEST(PageTextTest, TheTokenStaysInItsField) {
  const std::string page = page_text(true);
  EXPECT_THAT(page, HasSubstr("<input id=\"token\" type=\"password\" autocomplete=\"off\""));
  for (const char* place : {"<form", "Storage", "cookie", "history.", "location", "indexedDB"})
    EXPECT_THAT(page, Not(HasSubstr(place)));
}

}  // namespace
}  // namespace drun::launcher
