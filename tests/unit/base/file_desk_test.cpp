#include "base/file_desk.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun {
namespace {

using test::kPatience;

TEST(FileDeskTest, AnswersComeFromTheLoopAndEachIsFollowedByTheCall) {
  asio::io_context io;
  std::string heard;
  std::optional<FileDesk> desk;
  int served = 0;
  desk.emplace(io, [&] {
    heard += "served ";
    if (++served == 2) desk->cancel();
  });
  for (const char* const name : {"first ", "second "})
    desk->ask<const char*>(
        kPatience * 2, [name] { return name; },
        [&](const Result<const char*>& result) { heard += *result; });
  EXPECT_EQ(heard, "");
  io.run_for(kPatience);
  EXPECT_EQ(heard, "first served second served ");
}

// Also if that happens while an answer is being given, which is where an agent ends.
TEST(FileDeskTest, ACancelledOneKeepsNoLoopRunning) {
  asio::io_context io;
  std::optional<FileDesk> desk;
  desk.emplace(io, [&] { desk->cancel(); });
  bool answered = false;
  desk->ask<int>(
      kPatience * 2, [] { return 1; }, [&](const Result<int>&) { answered = true; });
  io.run_for(kPatience);
  EXPECT_TRUE(answered);
  EXPECT_TRUE(io.stopped());
}

}  // namespace
}  // namespace drun
