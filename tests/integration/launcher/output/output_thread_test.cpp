#include "launcher/output/output_thread.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

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
  OutputThread thread({out.write.get(), err.write.get()});
  thread.start();
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(thread.drain({}, kPatience));
  std::string shown;
  for (const std::string line : {"one\n", "two\n"}) {
    thread.post(message_command(line));
    ASSERT_TRUE(read_until(err.read.get(), shown, [&] { return shown.ends_with(line); }));
  }
  EXPECT_EQ(thread.loop().answer(), nullptr);
}

// What is left takes longer than the patience, which counts from the last bytes that were taken.
TEST(OutputThreadTest, AReaderThatIsSlowGetsEverything) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kWaitsForAReader = std::chrono::milliseconds(1'000);
  const std::string text = std::string(8 << 20, 'x') + "\n";
  const auto patience_is_over = Clock::now() + kPatience;
  for (;;) {
    const test::Pipe out;
    const test::Pipe err;
    OutputThread thread({out.write.get(), err.write.get()});
    thread.start();
    thread.post(message_command(text));
    std::thread stops([&] { thread.stop({}, kWaitsForAReader); });
    std::string shown;
    auto longest_gap = Clock::duration::zero();
    const auto begin = Clock::now();
    for (auto last = begin; last < begin + kWaitsForAReader * 3 / 2;) {
      const std::size_t before = shown.size();
      read_until(err.read.get(), shown, [&] { return shown.size() > before; });
      pollfd nothing{-1, 0, 0};
      ::poll(&nothing, 1, 20);
      longest_gap = std::max(longest_gap, Clock::now() - std::exchange(last, Clock::now()));
    }
    read_until(err.read.get(), shown, [&] { return shown.size() >= text.size(); });
    stops.join();
    if (shown == text) break;
    // Where the machine stands still, this reader is one that takes nothing.
    ASSERT_GT(longest_gap, kWaitsForAReader / 2) << shown.size() << " of " << text.size();
    ASSERT_LT(Clock::now(), patience_is_over);
  }
}

}  // namespace
}  // namespace drun::launcher
