#include "launcher/output/output_lines.hpp"

#include <array>
#include <cstdlib>
#include <regex>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

std::string content(const BufferChain& chain) {
  std::array<iovec, 64> parts{};
  std::string text;
  const std::size_t count = chain.parts(parts, chain.size());
  for (std::size_t i = 0; i < count; ++i)
    text.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return text;
}

TEST(WholeLinesTest, EndsAtTheLastLineEnd) {
  EXPECT_EQ(whole_lines("", 0), 0U);
  EXPECT_EQ(whole_lines("abc", 0), 0U);
  EXPECT_EQ(whole_lines("abc\n", 0), 4U);
  EXPECT_EQ(whole_lines("a\nb\nc", 0), 4U);
  EXPECT_EQ(whole_lines("abc\rdef", 0), 0U);
  EXPECT_EQ(whole_lines("\n", 0), 1U);
  EXPECT_EQ(whole_lines("abc", 3), 0U);
  const std::string no_line(kLongestLine, 'x');
  EXPECT_EQ(whole_lines(no_line, 100), no_line.size());
  EXPECT_EQ(whole_lines(no_line.substr(1), 100), 0U);
  EXPECT_EQ(whole_lines(no_line + "\nrest", 100), no_line.size() + 1);
}

TEST(LeftAfterTest, SaysWhatIsOnTheConsole) {
  using Left = LineState;
  const auto same = [](Left a, Left b) {
    return a.open == b.open && a.at_line_start == b.at_line_start && a.has_return == b.has_return &&
           a.too_long == b.too_long;
  };
  EXPECT_TRUE(same(state_after({}, ""), {}));
  EXPECT_TRUE(same(state_after({}, "line\n"), {}));
  EXPECT_TRUE(same(state_after({}, "line\npart"), {.open = true}));
  EXPECT_TRUE(
      same(state_after({}, " 10%\r"), {.open = true, .at_line_start = true, .has_return = true}));
  EXPECT_TRUE(same(state_after({}, "\r 10%"), {.open = true, .has_return = true}));
  const Left bar = state_after({}, "\r 10%");
  EXPECT_TRUE(same(state_after(bar, " of it"), {.open = true, .has_return = true}));
  EXPECT_TRUE(same(state_after(bar, " done\n"), {}));
  EXPECT_TRUE(same(state_after({}, "dos\r\n"), {}));
  EXPECT_TRUE(
      same(state_after({}, std::string(kLongestLine, 'x')), {.open = true, .too_long = true}));
}

TEST(BarAfterTest, IsWhatIsSeenBehindTheLastReturn) {
  struct Case {
    std::string_view shown;
    bool at_line_start;
    std::string_view bytes;
    std::string_view expected;
  };
  const Case cases[] = {
      {"", false, "\r 10%", " 10%"},
      {" 10%", false, "\r 20%", " 20%"},
      {" 10%", false, " of it", " 10% of it"},
      {" 10%", false, "\r", " 10%"},
      {" 10%", true, " 20%\r", " 20%"},
      {" 10%", true, " 20%\r\r", " 20%"},
      {" 10%", false, "\r 20%\r 30%\r", " 30%"},
      {" 10%", false, "\n", ""},
      {" 10%", false, "\nnext\r 5%", " 5%"},
      {" 10%", false, "", " 10%"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(bar_after(std::string(c.shown), c.at_line_start, c.bytes), c.expected) << c.bytes;
  const std::string half(3'000, 'x');
  EXPECT_EQ(bar_after("", false, half), half);
  EXPECT_EQ(bar_after(half, false, half), "");
}

TEST(LinePrefixTest, IsTorchrunsUnlessTheUserSays) {
  const PrefixNames names{"trainer", 12, 3, "node7.cluster.example"};
  EXPECT_EQ(line_prefix("", names), "[trainer3]:");
  EXPECT_EQ(line_prefix("${hostname}:${rank}/${local_rank} ${role_name} ${x}|", names),
            "node7:12/3 trainer ${x}|");
}

TEST(TimeStampTest, IsThatOfRfc3339AndABlank) {
  const auto time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1795191822007));
  const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.007[+-]\d\d:\d\d )");
  EXPECT_TRUE(std::regex_match(time_stamp(time), form)) << time_stamp(time);
  EXPECT_EQ(time_stamp(time).size(), kTimeStampLength);
  const std::optional<std::string> zone =
      std::getenv("TZ") == nullptr ? std::nullopt : std::optional<std::string>(std::getenv("TZ"));
  auto later = time;
  for (const auto& [name, text] : {std::pair{"UTC0", "2026-11-20T16:23:43.007+00:00 "},
                                   std::pair{"EAST-5:30", "2026-11-20T21:53:44.007+05:30 "},
                                   std::pair{"WEST+3", "2026-11-20T13:23:45.007-03:00 "}}) {
    ::setenv("TZ", name, 1);
    ::tzset();
    later += std::chrono::seconds(1);  // a second has one zone
    EXPECT_EQ(time_stamp(later), text);
  }
  EXPECT_EQ(time_stamp(later + std::chrono::milliseconds(992)).substr(17), "45.999-03:00 ");
  zone ? ::setenv("TZ", zone->c_str(), 1) : ::unsetenv("TZ");
  ::tzset();
}

TEST(AppendLinesTest, PutsThePrefixBeforeEachLine) {
  struct Case {
    std::string_view lines;
    Begins begins;
    std::string_view expected;
  };
  using namespace std::string_view_literals;
  const Case cases[] = {
      {"a\nb\n", Begins::Line, "P:a\nP:b\n"},
      {"rest\nb\n", Begins::Middle, "rest\nP:b\n"},
      {"\n\n", Begins::Line, "P:\nP:\n"},
      {"\n", Begins::Middle, "\n"},
      {"part", Begins::Line, "P:part"},
      {"part", Begins::Middle, "part"},
      {"a\rb\r\n", Begins::Line, "P:a\rP:b\r\n"},
      {"10%\r20%\r\r30%\r", Begins::Line, "P:10%\rP:20%\r\rP:30%\r"},
      {"\r10%\n\ra\n", Begins::Line, "\rP:10%\n\rP:a\n"},
      {"\r\r10%\r20%", Begins::Line, "\r\rP:10%\rP:20%"},
      {"\r\n\r\r\n", Begins::Line, "P:\r\nP:\r\r\n"},
      {"x\ry\nz", Begins::Middle, "x\rP:y\nP:z"},
      {"40%", Begins::Return, "P:40%"},
      {"\na\n", Begins::Return, "\nP:a\n"},
      {"\r\na\n", Begins::Return, "\r\nP:a\n"},
      {"\r40%", Begins::Return, "\rP:40%"},
      {"\r", Begins::Return, "\r"},
      {"nul\0\n\xff\n"sv, Begins::Line, "P:nul\0\nP:\xff\n"sv},
      {"", Begins::Line, ""},
  };
  for (const Case& c : cases) {
    BufferPool pool;
    BufferChain chain(pool);
    append_lines(chain, c.lines, "P:", c.begins);
    EXPECT_EQ(content(chain), c.expected);
  }
}

TEST(AppendLinesTest, CrossesBuffersUnharmed) {
  std::string lines;
  std::string expected;
  for (int i = 0; i < 30'000; ++i) {
    const std::string line =
        std::string(static_cast<std::size_t>(i * 13 % 70), 'x') + std::to_string(i) + '\n';
    lines += line;
    expected += "[default0]:" + line;
  }
  const std::string huge(3 * kLongestLine, 'y');
  lines += huge + '\n' + huge;
  expected += "[default0]:" + huge + "\n[default0]:" + huge;
  BufferPool pool;
  BufferChain chain(pool);
  append_lines(chain, lines, "[default0]:", Begins::Line);
  ASSERT_EQ(chain.size(), expected.size());
  EXPECT_TRUE(content(chain) == expected);
}

TEST(BufferChainTest, GivesBackWhatWasPutInAsItIsConsumed) {
  BufferPool pool;
  BufferChain chain(pool);
  EXPECT_TRUE(chain.empty());
  std::string model;
  unsigned seed = 1;
  const auto random = [&](std::size_t below) {
    seed = seed * 1103515245U + 12345U;
    return (seed >> 8U) % below;
  };
  for (int step = 0; step < 2000; ++step) {
    const std::size_t size = random(20'000);
    const std::string bytes(size, static_cast<char>('a' + step % 26));
    if (random(3) == 0) {
      char* const to = chain.room(size + 1);
      ASSERT_GT(chain.spare(), size);
      std::copy(bytes.begin(), bytes.end(), to);
      chain.commit(size);
      chain.trim();
    } else {
      chain.append(bytes);
    }
    model += bytes;
    const std::size_t gone = random(model.size() + 1);
    chain.consume(gone);
    model.erase(0, gone);
    ASSERT_EQ(chain.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(chain.front(), model.front());
    }
    if (step % 50 == 0) {
      ASSERT_TRUE(content(chain) == model);
    }
  }
}

TEST(BufferChainTest, AWriteIsAtMostAsLongAsAskedFor) {
  BufferPool pool;
  BufferChain chain(pool);
  chain.append(std::string(kBufferSize + 10, 'x'));
  std::array<iovec, 4> parts{};
  EXPECT_EQ(chain.parts(parts, 0), 0U);
  EXPECT_EQ(chain.parts(parts, 5), 1U);
  EXPECT_EQ(parts[0].iov_len, 5U);
  EXPECT_EQ(chain.parts(parts, kBufferSize + 3), 2U);
  EXPECT_EQ(parts[1].iov_len, 3U);
  EXPECT_EQ(chain.parts(std::span(parts).first(1), kBufferSize + 3), 1U);
}

}  // namespace
}  // namespace drun::launcher
