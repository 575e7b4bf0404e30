#include "launcher/page/page_html.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageHtmlTest, ItIsOneFileThatAsksNobodyElse) {
  const std::string page(page_html());
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>\n"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  for (const char* address : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(address)));
}

// A host or a reason is others' text.
TEST(PageHtmlTest, TextIsNeverTakenForMarkup) {
  const std::string page(page_html());
  for (const char* danger :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"})
    EXPECT_THAT(page, Not(HasSubstr(danger)));
}

}  // namespace
}  // namespace drun::launcher
