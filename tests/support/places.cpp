#include "support/places.hpp"

namespace drun::places {
namespace {

std::string below(std::string folder, std::string_view path) {
  return path.empty() ? folder : folder.append("/").append(path);
}

}  // namespace

std::string program(std::string_view name) {
  return below(DRUN_BIN_DIR, name);
}

std::string test_program(std::string_view name) {
  return below(DRUN_TEST_BIN_DIR, name);
}

std::string source(std::string_view path) {
  return below(DRUN_SOURCE_DIR, path);
}

}  // namespace drun::places
