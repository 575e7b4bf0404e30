#include "launcher/look/dwfl_library.hpp"

#include <dlfcn.h>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

// libdw loads it, and what it needs, in every process that looks for debug information.
TEST(DwflLibraryTest, WhatLibdwLoadsLaterIsThereForAllWhoAreForked) {
  if (!load_dwfl()) GTEST_SKIP() << "libdw is not installed";
  const bool loaded = ::dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  EXPECT_EQ(loaded, ::dlopen("libdebuginfod.so.1", RTLD_LAZY) != nullptr);
}

}  // namespace
}  // namespace drun::launcher
