#include "launcher/look/dwfl_library.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

// libdw loads it, and what it needs, in every process that looks for debug information.
TEST(DwflLibraryTest, WhatLibdwLoadsLaterIsThereForAllWhoAreForked) {
  if (!load_dwfl()) GTEST_SKIP() << "libdw is not installed";
  void* const loaded = ::dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = ::dlopen("libdebuginfod.so.1", RTLD_LAZY);
  if (found == nullptr) GTEST_SKIP() << "libdebuginfod is not installed";
  EXPECT_NE(loaded, nullptr);
  for (void* const each : {loaded, found})
    if (each != nullptr) ::dlclose(each);
}

}  // namespace
}  // namespace drun::launcher
