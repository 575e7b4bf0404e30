#include "base/system_call.hpp"

#include <sys/syscall.h>

#include <string>

#include <gtest/gtest.h>

namespace drun {
namespace {

std::string name_in(const std::string& text) {
  const auto call = system_call_in(text);
  return call ? std::string(call->name) : "none";
}

TEST(SystemCallTest, IsNamedIfProgramsWaitInIt) {
  EXPECT_EQ(name_in(std::to_string(SYS_futex) + " 0x1 0x2"), "futex");
  EXPECT_EQ(name_in(std::to_string(SYS_recvfrom)), "recvfrom");
  EXPECT_EQ(name_in("100000 0x1"), "");
  EXPECT_EQ(system_call_in("100000 0x1")->number, 100'000);
}

TEST(SystemCallTest, AThreadMayBeInNone) {
  EXPECT_EQ(name_in("running"), "none");
  EXPECT_EQ(name_in("-1 0x7 0x8"), "none");  // a fault, say
  EXPECT_EQ(name_in(""), "none");
}

TEST(SystemCallTest, TheFileThatItIsAboutIsTold) {
  EXPECT_EQ(system_call_in(std::to_string(SYS_read) + " 0x1f 0x7ffd")->file, 31);
  EXPECT_EQ(system_call_in(std::to_string(SYS_ppoll) + " 0x7ffd 0x2 0x0")->arguments,
            (std::array<std::uint64_t, 2>{0x7ffd, 2}));
  EXPECT_EQ(system_call_in(std::to_string(SYS_read))->file, std::nullopt);
  EXPECT_EQ(system_call_in(std::to_string(SYS_read) + " 0xffffffffff")->file, std::nullopt);
  EXPECT_EQ(system_call_in(std::to_string(SYS_futex) + " 0x1f 0x80")->file, std::nullopt);
}

}  // namespace
}  // namespace drun
