#include "base/base64.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(Base64Test, IsWhatTheStandardSays) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(Base64Test, ReadsWhatItWrites) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64Test, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg=", "Zg", "Zg=a", "Z===", "Zm9v!A==", "====", "Zm 9"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace drun
