#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stack_samples.hpp"
#include "stacks/stack_report.hpp"

namespace drun::stacks {
namespace {

TEST(StackJsonTest, AReportComesBackAsItWas) {
  auto reports = two_nodes();
  reports[1].notes = {{"its worker does not run", {{6, 6}}}};
  reports[1].left_out = 3;
  const StackReport report = fold(reports);
  const auto read = parse_report(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, report);
}

TEST(StackJsonTest, HasTheFormThatIsDocumented) {
  EXPECT_EQ(to_json(fold({"node0", {0, 0}}, {worker(0, {"recv (libc.so.6)", "main (train)"})})),
            R"~({"nodes":[{"host":"node0","ranks":[0,0]}],)~"
            R"~("states":[{"state":"S","wait":"futex_do_wait","call":"futex","ranks":[[0,0]],)~"
            R"~("silence_ms":[0,0]}],)~"
            R"~("groups":[{"kind":"worker","name":"","ranks":[[0,0]],"threads":1,"problem":"",)~"
            R"~("frames":["recv (libc.so.6)","main (train)"]}],"notes":[],"left_out":0})~");
}

TEST(StackJsonTest, BytesThatAreNoTextAreReplaced) {
  const std::string json = to_json(fold({"n\xff", {0, 0}}, {worker(0, {"f\xfe\x1b"})}));
  EXPECT_TRUE(parse_report(json));
  EXPECT_THAT(json, testing::HasSubstr("\\u001b"));
}

TEST(StackJsonTest, AReportThatIsTooLongKeepsWhatTellsMost) {
  std::vector<Sample> samples;
  for (int rank = 0; rank < 40; ++rank) {
    samples.push_back(worker(rank, {rank == 0 ? "read" : "recv"}));
    samples.push_back(thread(rank, "t" + std::to_string(rank), {std::string(300, 'x')}));
  }
  const StackReport report = fold({"node0", {0, 39}}, samples);
  EXPECT_EQ(to_json_within(report, 1U << 20), to_json(report));
  const std::string json = to_json_within(report, 6'000);
  EXPECT_LE(json.size(), 6'000U);
  const auto read = parse_report(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->groups[0].frames, std::vector<std::string>{"read"});
  EXPECT_EQ(read->left_out + read->groups.size(), report.groups.size());
}

// It may come from anybody who can write to the store.
TEST(StackJsonTest, RefusesWhatIsNoReport) {
  const std::string good = to_json(fold(two_nodes()));
  ASSERT_TRUE(parse_report(good));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_report(good.substr(0, length))) << length;
  for (
      const char* bad :
      {"[]", "null", "{}", R"({"nodes":[]})",
       R"({"nodes":[{"host":"a","ranks":[3,1]}],"states":[],"groups":[],"notes":[],"left_out":0})",
       R"({"nodes":[{"host":"a","ranks":[0,99999999999]}],"states":[],"groups":[],"notes":[],"left_out":0})",
       R"({"nodes":[7],"states":[],"groups":[],"notes":[],"left_out":0})",
       R"({"nodes":[],"states":[],"groups":[],"notes":[],"left_out":-1})",
       R"({"nodes":[],"states":[7],"groups":[],"notes":[],"left_out":0})"})
    EXPECT_FALSE(parse_report(bad)) << bad;
}

}  // namespace
}  // namespace drun::stacks
