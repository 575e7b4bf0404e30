#include "launcher/output/output_route.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr Route kPassedOn{.console = true, .terminal = true};
constexpr Route kFileOnly{.log = true, .direct = true};
constexpr Route kTee{.console = true, .log = true, .prefix = true};

TEST(RouteTest, ByDefaultEverythingIsPassedOn) {
  for (const bool error : {false, true})
    for (const bool logs : {false, true})
      EXPECT_EQ(route_of({}, 3, error, logs), kPassedOn);
}

TEST(RouteTest, RedirectedStreamsGoStraightToTheirFile) {
  OutputChoices choices;
  choices.redirects.all = StreamChoice::kOut;
  EXPECT_EQ(route_of(choices, 0, false, true), kFileOnly);
  EXPECT_EQ(route_of(choices, 0, true, true), kPassedOn);
  choices.redirects.by_local_rank[12] = StreamChoice::kErr;
  EXPECT_EQ(route_of(choices, 12, false, true), kPassedOn);
  EXPECT_EQ(route_of(choices, 12, true, true), kFileOnly);
}

TEST(RouteTest, ALimitedLogPassesThroughDrun) {
  OutputChoices choices;
  choices.redirects.all = 3;
  choices.log_max_size = 1000;
  EXPECT_EQ(route_of(choices, 0, false, true), (Route{.log = true}));
}

TEST(RouteTest, RedirectedStreamsWithoutALogFolderAreNotKept) {
  OutputChoices choices;
  choices.redirects.all = 3;
  EXPECT_EQ(route_of(choices, 0, false, false), (Route{.nothing = true}));
  EXPECT_EQ(route_of(choices, 0, true, false), Route{}) << "its end is kept for the report";
}

TEST(RouteTest, TeedStreamsAreShownWithAPrefixAndKept) {
  OutputChoices choices;
  choices.tee.all = 3;
  EXPECT_EQ(route_of(choices, 0, false, true), kTee);
  EXPECT_EQ(route_of(choices, 0, true, false), (Route{.console = true, .prefix = true}));
  choices.redirects.all = 3;  // tee wins
  EXPECT_EQ(route_of(choices, 0, false, true), kTee);
}

TEST(RouteTest, RanksThatAreFilteredOutAreNotShown) {
  OutputChoices choices;
  choices.local_ranks_filter = std::vector<int>{0, 2};
  EXPECT_EQ(route_of(choices, 2, false, true), kPassedOn);
  EXPECT_EQ(route_of(choices, 1, false, true), (Route{.nothing = true}));
  EXPECT_EQ(route_of(choices, 1, true, true), Route{});
  choices.tee.all = 3;
  EXPECT_EQ(route_of(choices, 1, false, true), (Route{.log = true, .prefix = true}));
  choices.redirects.all = 3;
  choices.tee.all = 0;
  EXPECT_EQ(route_of(choices, 1, false, true), kFileOnly);
  EXPECT_EQ(route_of(choices, 2, false, true), kFileOnly);
  choices.local_ranks_filter = std::vector<int>{};
  choices.redirects.all = 0;
  EXPECT_EQ(route_of(choices, 0, false, true), (Route{.nothing = true}));
}

TEST(RouteTest, FiltersLookThroughTeedStreamsOnly) {
  OutputChoices choices;
  choices.duplicate_stdout_filters = {"loss"};
  EXPECT_FALSE(route_of(choices, 0, false, true).filter);
  choices.tee.all = 3;
  EXPECT_TRUE(route_of(choices, 0, false, true).filter);
  EXPECT_FALSE(route_of(choices, 0, true, true).filter);
  EXPECT_FALSE(route_of(choices, 0, false, false).filter);
}

TEST(RouteTest, FoldedLinesNeedNoTerminal) {
  OutputChoices choices;
  choices.fold = true;
  EXPECT_EQ(route_of(choices, 0, false, false), (Route{.console = true}));
}

}  // namespace
}  // namespace drun::launcher
