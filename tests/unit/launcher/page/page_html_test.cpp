#include "launcher/page/page_html.hpp"

#include <algorithm>
#include <cmath>
#include <map>
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

// The variables of the style that begins at `from`.
std::map<std::string, std::string> colours(const std::string& page, std::size_t from) {
  std::map<std::string, std::string> found;
  const std::size_t end = page.find('}', from);
  for (auto at = page.find("--", from); at < end; at = page.find("--", at + 2)) {
    const auto colon = page.find(':', at);
    found[page.substr(at + 2, colon - at - 2)] = page.substr(colon + 2, 7);
  }
  return found;
}

// As WCAG 2.2 defines it.
double luminance(const std::string& colour) {
  const auto part = [&](std::size_t at) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

double contrast(const std::string& a, const std::string& b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

TEST(PageHtmlTest, TheTextOnEachColourCanBeRead) {
  const std::string page(page_html());
  const auto light = page.find(":root {");
  for (const auto from : {light, page.find(":root {", light + 1)}) {
    const auto style = colours(page, from);
    for (const char* state :
         {"running", "succeeded", "failed", "stopping", "stopped", "waiting", "spare"})
      EXPECT_GE(contrast(style.at("on"), style.at(state)), 4.5) << state;
    EXPECT_GE(contrast(style.at("text"), style.at("back")), 4.5);
    EXPECT_GE(contrast(style.at("soft"), style.at("back")), 4.5);
  }
}

// Of a large job the nodes are two hundred rows.
TEST(PageHtmlTest, TheEventsStandAboveTheNodes) {
  const std::string page(page_html());
  EXPECT_LT(page.find("id=\"events\""), page.find("id=\"nodes\""));
}

}  // namespace
}  // namespace drun::launcher
