#include "jobs/progress.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::jobs {
namespace {

// Times are seconds.
struct Note {
  std::int64_t step;
  double time;
  std::int64_t most_step;
  double most_time;
};

Progress progress(const std::vector<Note>& notes, double now) {
  const auto ms = [](double seconds) { return static_cast<std::int64_t>(seconds * 1'000); };
  std::vector<NodeBeats> nodes;
  for (const Note& note : notes) {
    const int rank = static_cast<int>(nodes.size());
    nodes.push_back({"node" + std::to_string(rank),
                     {1, rank, note.step, ms(note.time), note.most_step, ms(note.most_time)}});
  }
  return progress_of(nodes, ms(now));
}

struct Row {
  const char* what;
  std::vector<Note> notes;
  double now;
  std::optional<int> behind;  // the rank that is named
};

const std::vector<Row> kRows = {
    {"all are as far", {{40, 100, 40, 100}, {40, 100.1, 40, 100.1}}, 101, std::nullopt},
    // A step of 0.1 s: the first node's note is nine seconds old.
    {"a note that is older", {{100, 100, 100, 100}, {190, 109, 190, 109}}, 109.5, std::nullopt},
    // A step of a minute: the first node has not noted its last yet.
    {"a note that is about to come", {{1, 100, 1, 100}, {2, 160, 2, 160}}, 161, std::nullopt},
    {"a note that has not come", {{1, 100, 1, 100}, {2, 160, 2, 160}}, 176, 0},
    {"it says a lower step later", {{40, 105, 40, 105}, {57, 100, 57, 100}}, 106, 0},
    // The others go on with a step each second, without it.
    {"it is silent while others go on", {{40, 100, 40, 100}, {80, 140, 80, 140}}, 141, 0},
    {"not yet for long", {{40, 100, 40, 100}, {50, 110, 50, 110}}, 112, std::nullopt},
    {"inside of a node", {{40, 100, 41, 101}}, 120, 0},
    {"inside of a node, just now", {{40, 100, 41, 101}}, 102, std::nullopt},
    {"the middle one is nobody's",
     {{41, 100, 41, 100}, {40, 101, 40, 101}, {60, 100, 60, 100}},
     120,
     1},
    {"all hang at one step", {{41, 100, 41, 100.5}, {41, 101, 41, 101}}, 900, std::nullopt},
    {"it came to the step before the other",
     {{41, 100, 41, 100}, {41, 150, 41, 150}},
     190,
     std::nullopt},
    // Without steps.
    {"one is older", {{-1, 100, -1, 100}, {-1, 109, -1, 109}}, 110, std::nullopt},
    {"one is silent for long", {{-1, 100, -1, 100}, {-1, 180, -1, 180}}, 181, 0},
    {"they are a while apart", {{-1, 100, -1, 100}, {-1, 174, -1, 174}}, 900, std::nullopt},
    {"not all say steps", {{40, 180, 40, 180}, {-1, 100, -1, 100}}, 181, 1},
    {"one node", {{-1, 100, -1, 100}}, 900, std::nullopt},
};

TEST(ProgressTest, OnlyWhoIsCertainlyBehindIsNamed) {
  for (const Row& row : kRows) {
    const auto behind = progress(row.notes, row.now).behind;
    EXPECT_EQ(behind.has_value(), row.behind.has_value()) << row.what;
    if (behind) {
      EXPECT_EQ(behind->rank, row.behind) << row.what;
    }
  }
}

TEST(ProgressTest, WhatIsToldOfTheRank) {
  const auto found = progress({{57, 100, 57, 100}, {40, 105, 44, 105}}, 106);
  EXPECT_EQ(found.least_step, 40);
  EXPECT_EQ(found.most_step, 57);
  ASSERT_TRUE(found.behind);
  EXPECT_EQ(found.behind->host, "node1");
  EXPECT_EQ(found.behind->rank, 1);
  EXPECT_EQ(found.behind->step, 40);
  EXPECT_EQ(found.behind->time_ms, 105'000);
}

TEST(ProgressTest, StepsAreToldIfAllSayThem) {
  const auto found = progress({{40, 180, 40, 180}, {-1, 100, -1, 100}}, 181);
  EXPECT_EQ(found.least_step, -1);
  EXPECT_EQ(found.most_step, -1);
}

// Of a node that says only who is behind.
TEST(ProgressTest, TheMostIsNoLessThanTheLeast) {
  EXPECT_EQ(progress({{41, 100, -1, 0}}, 101).most_step, 41);
}

// Times that somebody has made up.
TEST(ProgressTest, NonsenseOverflowsNothing) {
  const std::int64_t most = std::int64_t{1} << 53;
  const std::vector<NodeBeats> nodes = {{"a", {1, 0, 0, 0, 0, most}},
                                        {"b", {1, 1, most, most, INT64_MAX, 0}}};
  EXPECT_EQ(progress_of(nodes, most).least_step, 0);
  EXPECT_EQ(progress_of(nodes, 0).most_step, INT64_MAX);
}

}  // namespace
}  // namespace drun::jobs
