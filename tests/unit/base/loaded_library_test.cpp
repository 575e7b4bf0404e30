#include "base/loaded_library.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(LoadedLibraryTest, FindsFunctions) {
  double (*cosine)(double) = nullptr;
  LoadedLibrary library({"libm.so.6", "a test", "1", "libc6"});
  ASSERT_TRUE(library.need("cos", cosine).status());
  EXPECT_EQ(cosine(0), 1);
}

TEST(LoadedLibraryTest, AFunctionThatItMustHaveIsNeeded) {
  double (*cosine)(double) = nullptr;
  void (*other)() = nullptr;
  LoadedLibrary library({"libm.so.6", "a test", "7.68", "libc6"});
  EXPECT_TRUE(library.find("no_such_function", other).status());
  EXPECT_EQ(other, nullptr);
  const Status status = library.need("no_such_function", other).need("cos", cosine).status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), std::errc::not_supported);
  EXPECT_EQ(
      status.error().what(),
      "a test needs the library libm.so.6 in version 7.68 or later: install the Debian package "
      "libc6");
}

TEST(LoadedLibraryTest, OneThatIsNotThereIsNamed) {
  void (*function)() = nullptr;
  LoadedLibrary library({"libnone.so.1", "a test", "1", "libnone1"});
  const Status status = library.find("any", function).status();
  ASSERT_FALSE(status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status.error().code(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(status.error().what(),
            "a test needs the library libnone.so.1, which is not there: install the Debian package "
            "libnone1");
}

}  // namespace
}  // namespace drun
