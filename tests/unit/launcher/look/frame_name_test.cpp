#include "launcher/look/frame_name.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(FrameNameTest, UndoesWhatACompilerMade) {
  EXPECT_EQ(function_name("recv"), "recv");
  EXPECT_EQ(function_name("pthread_cond_wait@@GLIBC_2.3.2"), "pthread_cond_wait");
  EXPECT_EQ(function_name(""), "");
  EXPECT_EQ(function_name("_ZN4drun4waitEi"), "drun::wait(int)");
  EXPECT_EQ(function_name("_ZNSt5mutex4lockEv"), "std::mutex::lock()");
}

TEST(FrameNameTest, LeavesLongBracketsOut) {
  EXPECT_EQ(shortened("f(int)"), "f(int)");
  EXPECT_EQ(
      shortened(
          "f<std::vector<int, std::allocator<int> > >(std::map<int, std::less<int> > const&)"),
      "f<...>(...)");
  EXPECT_EQ(
      shortened("g<int>::h(std::function<void (int, char const*, unsigned long)>)::{lambda()#1}"),
      "g<int>::h(...)::{lambda()#1}");
  EXPECT_EQ(shortened("(anonymous namespace)::f()"), "(anonymous namespace)::f()");
}

TEST(FrameNameTest, OperatorsAreNoBrackets) {
  EXPECT_EQ(shortened("a::operator<<(std::basic_ostream<char, std::char_traits<char> >&)"),
            "a::operator<<(...)");
  EXPECT_EQ(shortened("a::operator()(std::vector<int, std::allocator<int> >) const"),
            "a::operator()(...) const");
  EXPECT_EQ(shortened("a::operator->()"), "a::operator->()");
  EXPECT_EQ(shortened("operator new(unsigned long)"), "operator new(unsigned long)");
}

TEST(FrameNameTest, UnbalancedBracketsStay) {
  EXPECT_EQ(shortened("f<g(h"), "f<g(h");
  EXPECT_EQ(shortened(""), "");
}

TEST(FrameNameTest, WhatEveryProgramBeginsWithSaysNothing) {
  std::vector<std::string> frames{"recv (libc.so.6)", "main (train)",
                                  "__libc_start_call_main (libc.so.6)",
                                  "__libc_start_main (libc.so.6)", "_start (train)"};
  drop_start(frames);
  EXPECT_EQ(frames, (std::vector<std::string>{"recv (libc.so.6)", "main (train)"}));
  frames = {"start_thread (libc.so.6)", "__clone3 (libc.so.6)"};
  drop_start(frames);
  EXPECT_EQ(frames, std::vector<std::string>{"start_thread (libc.so.6)"}) << "something is left";
  frames.clear();
  drop_start(frames);
  EXPECT_TRUE(frames.empty());
}

TEST(FrameNameTest, AModuleHasNoFolderAndNoProcess) {
  EXPECT_EQ(module_name("/lib/x86_64-linux-gnu/libc.so.6"), "libc.so.6");
  EXPECT_EQ(module_name("[vdso: 4711]"), "[vdso]");
}

}  // namespace
}  // namespace drun::launcher
