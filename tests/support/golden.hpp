// Compares a text with a file under tests/golden. DRUN_UPDATE_GOLDEN=1 writes the file instead.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/places.hpp"

namespace drun::test {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = places::source("tests/golden/") + name;
  if (std::getenv("DRUN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; DRUN_UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path << "; DRUN_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace drun::test
