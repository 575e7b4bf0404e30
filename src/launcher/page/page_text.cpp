#include "launcher/page/page_text.hpp"

#include <string_view>

#include "launcher/page/page_html.hpp"

namespace drun::launcher {

std::string page_text(bool takes_stacks) {
  constexpr std::string_view kNo = "data-stacks=\"no\"";
  std::string page(page_html());
  if (const auto at = page.find(kNo); takes_stacks && at != std::string::npos)
    page.replace(at, kNo.size(), "data-stacks=\"yes\"");
  return page;
}

}  // namespace drun::launcher
