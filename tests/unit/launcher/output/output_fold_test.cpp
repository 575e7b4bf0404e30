#include "launcher/output/output_fold.hpp"

#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  for (; !text.empty(); text.remove_prefix(lines.back().size()))
    lines.emplace_back(text.substr(0, text.find('\n') + 1));
  return lines;
}

class LineFolderTest : public testing::Test {
 protected:
  std::vector<std::string> due() {
    std::vector<std::string> lines;
    while (const auto folded = folder_.next(now_))
      for (const auto& line : split(folded->lines))
        lines.push_back(std::string(folded->prefix) + line);
    return lines;
  }
  void join(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      folder_.join(rank);
  }

  LineFolder folder_;
  LineFolder::Time now_ = LineFolder::Time{} + std::chrono::hours(1);
};

// "[rank 3] ", "[ranks 0-2,4] ".
std::vector<int> ranks_of(std::string_view prefix) {
  std::istringstream text(std::string(prefix.substr(prefix.find(' '))));
  std::vector<int> ranks;
  char mark = ',';
  for (int rank = 0; mark != ']' && text >> rank >> mark;) {
    const int first = rank;
    if (mark == '-') text >> rank >> mark;
    for (int each = first; each <= rank; ++each)
      ranks.push_back(each);
  }
  return ranks;
}

TEST_F(LineFolderTest, ALineOfAllRanksIsShownOnceAndAtOnce) {
  join(3);
  folder_.add(2, "hello\n", now_);
  folder_.add(0, "hello\n", now_);
  EXPECT_THAT(due(), ElementsAre());
  folder_.add(1, "hello\n", now_);
  EXPECT_THAT(due(), ElementsAre("[ranks 0-2] hello\n"));
  EXPECT_EQ(folder_.deadline(), std::nullopt);
}

TEST_F(LineFolderTest, ALineOfSomeRanksWaitsForTheOthersAWhile) {
  join(4);
  folder_.add(0, "hello\n", now_);
  folder_.add(3, "hello\n", now_);
  EXPECT_EQ(folder_.deadline(), now_ + milliseconds(300));
  now_ += milliseconds(299);
  EXPECT_THAT(due(), ElementsAre());
  now_ += milliseconds(1);
  EXPECT_THAT(due(), ElementsAre("[ranks 0,3] hello\n"));
  folder_.add(1, "hello\n", now_);
  now_ += milliseconds(300);
  EXPECT_THAT(due(), ElementsAre("[rank 1] hello\n"));
}

TEST_F(LineFolderTest, EachRanksLinesStayInOrder) {
  join(2);
  folder_.add(0, "a\n", now_);
  folder_.add(0, "b\n", now_);
  folder_.add(1, "b\n", now_);
  folder_.add(1, "a\n", now_);  // after b: not the "a" of rank 0, which came before b
  now_ += milliseconds(300);
  EXPECT_THAT(due(), ElementsAre("[rank 0] a\n", "[ranks 0-1] b\n", "[rank 1] a\n"));
}

TEST_F(LineFolderTest, ALineThatNobodyCanPrintAnyMoreIsShownAtOnce) {
  join(3);
  folder_.add(0, "loss 0.1\n", now_);
  folder_.add(1, "loss 0.2\n", now_);
  EXPECT_THAT(due(), ElementsAre());
  folder_.add(2, "loss 0.3\n", now_);
  EXPECT_THAT(due(), ElementsAre("[rank 0] loss 0.1\n"));  // "loss 0.2" may be rank 0's next line
  folder_.add(0, "loss 0.4\n", now_);
  EXPECT_THAT(due(), ElementsAre("[rank 1] loss 0.2\n"));
  EXPECT_EQ(folder_.deadline(), now_ + milliseconds(300));
}

TEST_F(LineFolderTest, ALineThatARankRepeatsIsCountedEachTime) {
  join(2);
  for (int i = 0; i < 2; ++i)
    folder_.add(0, "x\n", now_);
  for (int i = 0; i < 2; ++i)
    folder_.add(1, "x\n", now_);
  EXPECT_THAT(due(), ElementsAre("[ranks 0-1] x\n", "[ranks 0-1] x\n"));
}

TEST_F(LineFolderTest, NobodyWaitsForARankThatHasEnded) {
  join(3);
  folder_.add(0, "x\n", now_);
  folder_.add(1, "x\n", now_);
  folder_.leave(2);
  EXPECT_EQ(folder_.deadline(), LineFolder::Time{});
  EXPECT_THAT(due(), ElementsAre("[ranks 0-1] x\n"));
  folder_.leave(7);  // never joined
}

// As the last words of workers that end one after the other.
TEST_F(LineFolderTest, RanksThatHavePrintedAndLeftDoNotStandForThoseThatAreThere) {
  join(4);
  for (const int rank : {0, 1, 2}) {
    folder_.add(rank, "bye\n", now_);
    folder_.leave(rank);
    EXPECT_THAT(due(), ElementsAre());
    EXPECT_EQ(folder_.deadline(), now_ + milliseconds(300));
  }
  folder_.add(3, "bye\n", now_);
  folder_.leave(3);
  EXPECT_EQ(folder_.deadline(), LineFolder::Time{});
  EXPECT_THAT(due(), ElementsAre("[ranks 0-3] bye\n"));
}

TEST_F(LineFolderTest, ARankWithTwoStreamsTakesPartUntilBothEnd) {
  join(2);
  folder_.join(1);
  folder_.leave(1);
  folder_.add(0, "x\n", now_);
  EXPECT_THAT(due(), ElementsAre());
  folder_.leave(1);
  EXPECT_THAT(due(), ElementsAre("[rank 0] x\n"));
}

// The same text is many groups' at once; the first of them is the one to join, and to leave.
TEST_F(LineFolderTest, EqualLinesOfAFastAndASlowRankMeetOneByOne) {
  join(2);
  constexpr int kLines = 1000;
  for (int i = 0; i < kLines; ++i)
    folder_.add(0, "same\n", now_);
  for (int i = 0; i < kLines; ++i) {
    folder_.add(1, "same\n", now_);
    EXPECT_THAT(due(), ElementsAre("[ranks 0-1] same\n"));
  }
  EXPECT_EQ(folder_.deadline(), std::nullopt);
}

// As after a restart: it is another worker, and what the old one printed is not its own.
TEST_F(LineFolderTest, ARankThatComesBackStartsBehindWhatItHasPrinted) {
  join(2);
  folder_.add(0, "x\n", now_);
  folder_.leave(0);
  folder_.join(0);
  folder_.add(0, "x\n", now_);
  folder_.add(1, "x\n", now_);
  folder_.add(1, "x\n", now_);
  now_ += milliseconds(300);
  EXPECT_THAT(due(), ElementsAre("[ranks 0-1] x\n", "[ranks 0-1] x\n"));
}

TEST_F(LineFolderTest, HoldsABoundedNumberOfLines) {
  folder_ = LineFolder({.window = milliseconds(300), .lines = 10, .bytes = 1000});
  join(2);
  for (int i = 0; i < 15; ++i)
    folder_.add(0, std::to_string(i) + "\n", now_);
  EXPECT_EQ(due().size(), 5U);
  for (int i = 0; i < 5; ++i)
    folder_.add(0, std::string(300, 'x') + std::to_string(i) + "\n", now_);
  EXPECT_EQ(due().size(), 12U);
  now_ += milliseconds(300);
  EXPECT_EQ(due().size(), 3U);
}

// As many as a big machine has, some of which leave, and others of another node's number come.
TEST_F(LineFolderTest, FoldsTheLinesOfHundredsOfRanks) {
  join(70);
  for (int rank = 0; rank < 70; ++rank)
    folder_.add(rank, "a\n", now_);
  folder_.add(3, "b\n", now_);
  folder_.join(400);
  for (int rank = 71; rank < 200; ++rank)
    folder_.join(rank);
  now_ += milliseconds(300);
  EXPECT_THAT(due(), ElementsAre("[ranks 0-69] a\n", "[rank 3] b\n"));
  for (int rank = 0; rank < 70; ++rank)
    folder_.leave(rank);
  for (const int rank : {400, 150, 199}) {
    folder_.add(rank, "c\n", now_);
    EXPECT_THAT(due(), ElementsAre());
  }
  for (int rank = 71; rank < 200; ++rank)
    if (rank != 150 && rank != 199) folder_.leave(rank);
  EXPECT_THAT(due(), ElementsAre("[ranks 150,199,400] c\n"));
  folder_.join(5);  // the first ones are forgotten
  for (const int rank : {5, 400, 199, 150})
    folder_.add(rank, "d\n", now_);
  EXPECT_THAT(due(), ElementsAre("[ranks 5,150,199,400] d\n"));
}

// Texts that come again and again behind others, in the order of one rank and of another.
TEST_F(LineFolderTest, FindsTheOldestOfManyEqualLinesBehindOthers) {
  join(2);
  for (int i = 0; i < 2000; ++i)
    folder_.add(0, i % 2 == 0 ? "even\n" : "odd\n", now_);
  for (int i = 0; i < 1000; ++i)
    folder_.add(1, "odd\n", now_);
  now_ += milliseconds(300);
  const auto lines = due();
  ASSERT_EQ(lines.size(), 2000U);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(lines[i], i % 2 == 0 ? "[rank 0] even\n" : "[ranks 0-1] odd\n");
}

// Whatever the ranks print and whenever: every line of every rank once, in its order.
TEST_F(LineFolderTest, LosesAndReordersNothing) {
  join(5);
  std::map<int, std::vector<std::string>> printed;
  std::map<int, std::vector<std::string>> shown;
  const auto collect = [&] {
    while (const auto folded = folder_.next(now_))
      for (const int rank : ranks_of(folded->prefix))
        for (const auto& line : split(folded->lines))
          shown[rank].push_back(line);
  };
  unsigned seed = 7;
  for (int step = 0; step < 20'000; ++step) {
    seed = seed * 1103515245U + 12345U;
    const int rank = static_cast<int>((seed >> 8U) % 5);
    std::string line = "line " + std::to_string((seed >> 12U) % 6) + "\n";
    printed[rank].push_back(line);
    folder_.add(rank, line, now_);
    if ((seed >> 20U) % 8 == 0) now_ += milliseconds((seed >> 16U) % 100);
    collect();
  }
  now_ += milliseconds(300);
  collect();
  EXPECT_TRUE(printed == shown);
  EXPECT_EQ(folder_.deadline(), std::nullopt);
}

}  // namespace
}  // namespace drun::launcher
