# Writes a file into a source, byte by byte: compilers limit the length of a string. See drun_embed().
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
string(REGEX MATCH "^(.*)::([^:]*)$" whole "${FUNCTION}")
set(namespace "${CMAKE_MATCH_1}")
set(function "${CMAKE_MATCH_2}")
get_filename_component(name "${INPUT}" NAME)
file(WRITE "${OUTPUT}" "// Made from ${name}.
#include \"${HEADER}\"

namespace ${namespace} {
namespace {

constexpr char kEmbedded[] = {
${text}};

}  // namespace

std::string_view ${function}() {
  return {kEmbedded, sizeof kEmbedded};
}

}  // namespace ${namespace}
")
