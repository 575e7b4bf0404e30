#include "launcher/starter/self_copy.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/version.hpp"

namespace drun::launcher {
namespace {

using ::testing::MatchesRegex;

// A host keeps a copy under that name, and takes none that is shorter.
TEST(SelfCopyTest, OffersThisProgramByVersionAndContent) {
  const hosts::SelfOffer offer = self_offer();
  const std::string version(DRUN_VERSION_STRING);
  const std::string start = "drun-" + version + "-";
  ASSERT_EQ(offer.name.substr(0, start.size()), start);
  EXPECT_THAT(offer.name.substr(start.size()), MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(offer.name.size(), start.size() + 16);
  struct stat file {};
  ASSERT_EQ(::fstat(open_self().get(), &file), 0);
  EXPECT_EQ(offer.size, static_cast<std::uint64_t>(file.st_size));
  EXPECT_EQ(self_offer().name, offer.name) << "the same file has the same name";
}

TEST(SelfCopyTest, NamesTheMachineAsUnameDoes) {
  utsname names{};
  ASSERT_EQ(::uname(&names), 0);
  EXPECT_EQ(own_machine(), std::string(names.sysname) + " " + names.machine);
}

}  // namespace
}  // namespace drun::launcher
