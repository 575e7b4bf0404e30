#include "stacks/job_look.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "stack_samples.hpp"

namespace drun::stacks {
namespace {

TEST(JobLookTest, ARequestComesBackAsItWas) {
  const JobLook look{"a1b2", false, std::chrono::milliseconds(8'000), true, 5'000, 7};
  const auto read = decode_job_look(encode(look));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, "a1b2");
  EXPECT_FALSE(read->unwind);
  EXPECT_EQ(read->limit.count(), 8'000);
  EXPECT_TRUE(read->last);
  EXPECT_EQ(read->longest, 5'000U);
  EXPECT_EQ(read->round, 7);
}

// It comes from whoever can write to the store.
TEST(JobLookTest, RefusesWhatIsNoRequest) {
  for (const char* bad :
       {"", "{}", "[]", "7", R"({"id":"a","unwind":1,"limit_ms":1,"last":true,"longest":9000})",
        R"({"id":"","unwind":true,"limit_ms":1,"last":true,"longest":9000})",
        R"({"id":"a/b","unwind":true,"limit_ms":1,"last":true,"longest":9000})",
        R"({"id":"A","unwind":true,"limit_ms":1,"last":true,"longest":9000})"})
    EXPECT_FALSE(decode_job_look(bad)) << bad;
  EXPECT_FALSE(decode_job_look(encode({std::string(65, 'a'), true, {}, false})));
}

TEST(JobLookTest, ALimitIsReasonable) {
  for (const long long limit : {-5LL, 0LL, 999'999'999'999LL}) {
    const auto read = decode_job_look(encode({"a", true, std::chrono::milliseconds(limit), false}));
    ASSERT_TRUE(read);
    EXPECT_GE(read->limit.count(), 100);
    EXPECT_LE(read->limit.count(), 60'000);
  }
}

// The store of a job has room for those of all nodes.
TEST(JobLookTest, TheMoreNodesTheShorterTheirAnswers) {
  constexpr std::size_t kKibi = 1'024;
  EXPECT_EQ(longest_answer(0), 512 * kKibi);
  EXPECT_EQ(longest_answer(128), 512 * kKibi);
  EXPECT_EQ(longest_answer(1'024), 64 * kKibi);
  EXPECT_EQ(longest_answer(1'000'000), 4 * kKibi);
  for (const std::size_t longest : {std::size_t{0}, std::size_t{1} << 40}) {
    JobLook look;
    look.id = "a";
    look.longest = longest;
    const auto read = decode_job_look(encode(look));
    ASSERT_TRUE(read);
    EXPECT_GE(read->longest, 4 * kKibi);
    EXPECT_LE(read->longest, 512 * kKibi);
  }
}

TEST(JobLookTest, FoldsWhatTheNodesAnswerAndCountsTheOthers) {
  const auto reports = two_nodes();
  std::map<std::string, std::string> answers{{"a", to_json(reports[0])},
                                             {"b", to_json(reports[1])}};
  EXPECT_EQ(fold_answers(answers, 2), fold(reports));
  answers["c"] = "nonsense";
  const StackReport report = fold_answers(answers, 4);
  EXPECT_EQ(report.groups, fold(reports).groups);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].text, "2 of 4 nodes gave no answer in time");
}

TEST(JobLookTest, NamesTheNodesThatDoNotAnswer) {
  const auto reports = two_nodes();
  const auto& first = reports[0].nodes.at(0);
  const auto& second = reports[1].nodes.at(0);
  const std::vector<NodeRanks> places{first, second, {"node7", {90, 93}}, {"node8", {94, 97}}};
  const std::map<std::string, std::string> answers{{"a", to_json(reports[0])},
                                                   {"b", to_json(reports[1])}};
  StackReport report = fold_answers(answers, 4, places);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].text, "2 of 4 nodes gave no answer in time: node[7-8]");
  EXPECT_EQ(report.notes[0].ranks, (std::vector<NumberRange>{{90, 97}}));
  report = fold_answers({{"a", to_json(reports[0])}, {"b", "cannot look"}}, 2, {first, second});
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].text, "1 of 2 nodes gave no answer in time: " + second.host);
}

}  // namespace
}  // namespace drun::stacks
