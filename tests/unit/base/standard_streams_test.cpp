#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/pipe.hpp"
#include "support/in_child.hpp"
#include "support/patience.hpp"
#include "support/pipe.hpp"

namespace drun {
namespace {

using process::test::in_child;
using Clock = std::chrono::steady_clock;

TEST(StandardStreamsTest, ThoseThatAreClosedAreOpened) {
  EXPECT_EQ(in_child([] {
              ::close(STDIN_FILENO);
              ::close(STDERR_FILENO);
              open_standard_streams();
              for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                if (::fcntl(stream, F_GETFD) < 0) return 1 + stream;
              return 0;
            }),
            0);
}

// What comes of standard input: all that is there up to the end of a line.
int line_is(std::string_view written, std::string_view expected, std::size_t most) {
  return in_child([&] {
    test::Pipe pipe;
    ::dup2(pipe.read.get(), STDIN_FILENO);
    if (::write(pipe.write.get(), written.data(), written.size()) < 0) return 1;
    if (!written.ends_with('\n')) pipe.write.reset();
    return read_standard_input_line(most, Clock::now() + test::kPatience) == expected ? 0 : 2;
  });
}

TEST(StandardStreamsTest, ALineIsReadToItsEnd) {
  EXPECT_EQ(line_is("a line\n", "a line\n", 100), 0);
  EXPECT_EQ(line_is("no end", "no end", 100), 0);
  EXPECT_EQ(line_is("", "", 100), 0);
  EXPECT_EQ(line_is("too long", "too long", 3), 0) << "it has come already";
}

TEST(StandardStreamsTest, NobodyWaitsForALineForEver) {
  EXPECT_EQ(in_child([] {
              const test::Pipe pipe;
              ::dup2(pipe.read.get(), STDIN_FILENO);
              return read_standard_input_line(100, Clock::now()).empty() ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace drun
