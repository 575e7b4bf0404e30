#include "launcher/output/output_thread.hpp"

#include <string>

#include <gtest/gtest.h>

#include "support/output_rig.hpp"

namespace drun::launcher {
namespace {

using test::kPatience;
using test::read_until;

// A turn of the loop after it would answer again.
TEST(OutputThreadTest, EachDrainIsAnsweredOnce) {
  const test::Pipe out;
  const test::Pipe err;
  OutputThread thread({out.writer.get(), err.writer.get()});
  thread.start();
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(thread.drain({}, kPatience));
  std::string shown;
  for (const std::string line : {"one\n", "two\n"}) {
    thread.post(message_command(line));
    ASSERT_TRUE(read_until(err.reader.get(), shown, [&] { return shown.ends_with(line); }));
  }
  EXPECT_EQ(thread.loop().answer(), nullptr);
}

}  // namespace
}  // namespace drun::launcher
