#include "launcher/look/look_request.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

TEST(LookRequestTest, ComesBackAsItWas) {
  LookRequest request;
  request.node = {"node0", {4, 7}};
  request.workers = {{4, 4711, milliseconds(1'500)}, {5, 0, std::nullopt, true}};
  request.unwind = false;
  request.each = milliseconds(7);
  request.all = milliseconds(8);
  request.longest = 9'000;
  const auto read = decode_request(encode(request));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->node, request.node);
  ASSERT_EQ(read->workers.size(), 2U);
  EXPECT_EQ(read->workers[0].pid, 4711);
  EXPECT_EQ(read->workers[0].silence, milliseconds(1'500));
  EXPECT_EQ(read->workers[1].silence, std::nullopt);
  EXPECT_FALSE(read->workers[0].never_printed);
  EXPECT_TRUE(read->workers[1].never_printed);
  EXPECT_FALSE(read->unwind);
  EXPECT_EQ(read->each, milliseconds(7));
  EXPECT_EQ(read->all, milliseconds(8));
  EXPECT_EQ(read->longest, 9'000U);
}

TEST(LookRequestTest, ASampleComesBackAsItWas) {
  stacks::Sample sample;
  sample.rank = 3;
  sample.kind = stacks::Kind::Child;
  sample.name = "loader\n";
  sample.state = 'D';
  sample.wait = "fuse_wait";
  sample.call = "read";
  sample.frames = {"read", "main"};
  sample.problem = "none";
  sample.silence = milliseconds(5);
  sample.never_printed = true;
  const std::string line = encode(sample);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = decode_sample(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), line);
  EXPECT_TRUE(read->never_printed);
}

TEST(LookRequestTest, RefusesAnythingElse) {
  for (const char* bad : {"", "{}", "[]", "{\"host\":1}"}) {
    EXPECT_FALSE(decode_request(bad)) << bad;
    EXPECT_FALSE(decode_sample(bad)) << bad;
  }
}

}  // namespace
}  // namespace drun::launcher
