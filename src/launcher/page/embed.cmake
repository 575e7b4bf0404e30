# Writes the page into a source, byte by byte: compilers limit the length of a string.
file(READ "${INPUT}" rest HEX)
set(text "")
string(LENGTH "${rest}" length)
set(at 0)
while(at LESS length)
  string(SUBSTRING "${rest}" ${at} 64 piece)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," piece "${piece}")
  string(APPEND text "    ${piece}\n")
  math(EXPR at "${at} + 64")
endwhile()
file(WRITE "${OUTPUT}" "// Made from page.html.
#include \"launcher/page/page_html.hpp\"

namespace drun::launcher {
namespace {

constexpr char kPage[] = {
${text}};

}  // namespace

std::string_view page_html() {
  return {kPage, sizeof kPage};
}

}  // namespace drun::launcher
")
