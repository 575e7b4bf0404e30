#include "timeline/trace_json.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "told_job.hpp"

namespace drun::timeline {
namespace {

using nlohmann::json;
using test::job_with_a_restart;
using test::timeline_of;

json trace_of(const std::vector<test::ToldNode>& nodes) {
  return json::parse(trace_json(timeline_of(nodes)));
}

std::vector<json> those(const json& trace, const std::string& phase, const std::string& name) {
  std::vector<json> result;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase && event["name"] == name) result.push_back(event);
  return result;
}

TEST(TraceJsonTest, EachNodeIsAProcessAndEachRankAThread) {
  const json trace = trace_of(job_with_a_restart());
  std::map<int, std::string> processes;
  for (const json& event : those(trace, "M", "process_name"))
    processes[event["pid"]] = event["args"]["name"];
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "node0"}, {2, "node1"}, {3, "job"}}));
  std::map<std::pair<int, int>, std::string> threads;
  for (const json& event : those(trace, "M", "thread_name"))
    threads[{event["pid"], event["tid"]}] = event["args"]["name"];
  EXPECT_EQ(threads, (std::map<std::pair<int, int>, std::string>{{{1, 0}, "rank 0"},
                                                                 {{1, int(kNodeTrack)}, "node"},
                                                                 {{2, 1}, "rank 1"},
                                                                 {{2, int(kNodeTrack)}, "node"},
                                                                 {{3, 0}, "rounds"}}));
  EXPECT_EQ(trace["otherData"]["jobs"], json::array({"train"}));
}

TEST(TraceJsonTest, EveryEventHasWhatTheFormatAsksFor) {
  const json trace = trace_of(job_with_a_restart());
  for (const json& event : trace["traceEvents"]) {
    EXPECT_TRUE(event["pid"].is_number_integer() && event["tid"].is_number_integer()) << event;
    const std::string phase = event["ph"];
    if (phase == "M") continue;
    EXPECT_GE(event["ts"].get<double>(), 0) << event;
    EXPECT_GE(event.value("dur", 0.0), 0) << event;
    EXPECT_EQ(phase == "X", event.contains("dur")) << event;
    EXPECT_EQ(phase == "s" || phase == "f", event.contains("id")) << event;
  }
}

TEST(TraceJsonTest, TimesAreMicroseconds) {
  const json trace = trace_of(job_with_a_restart());
  const auto rounds = those(trace, "X", "round 1");
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_EQ(rounds[0]["ts"], 101'000.0);
  EXPECT_EQ(rounds[0]["dur"], 451'000.0);
  EXPECT_EQ(rounds[0]["args"]["stopped"], "rank 1: exit code 7");
}

TEST(TraceJsonTest, TheSlicesOfATrackDoNotOverlap) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  const json trace = trace_of(job_with_a_restart());
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X")
      tracks[{event["pid"], event["tid"]}].emplace_back(
          event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i)
      EXPECT_LE(slices[i - 1].second, slices[i].first) << track.first << " " << track.second;
  }
}

// From rank 1 to the node that was stopped for it; from the restart to both nodes.
TEST(TraceJsonTest, CausesAndRestartsAreFlows) {
  const json trace = trace_of(job_with_a_restart());
  const auto from = those(trace, "s", "cause");
  const auto to = those(trace, "f", "cause");
  ASSERT_EQ(from.size(), 1U);
  ASSERT_EQ(to.size(), 1U);
  EXPECT_EQ(from[0]["id"], to[0]["id"]);
  EXPECT_EQ(from[0]["pid"], 2);
  EXPECT_EQ(from[0]["tid"], 1);
  EXPECT_EQ(to[0]["pid"], 1);
  EXPECT_EQ(to[0]["bp"], "e");
  EXPECT_LE(from[0]["ts"], to[0]["ts"]);
  EXPECT_EQ(those(trace, "X", "restart 1").size(), 1U);
  EXPECT_EQ(those(trace, "f", "restart").size(), 2U);
  const auto causes = those(trace, "i", "first cause");
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0]["s"], "g");
}

TEST(TraceJsonTest, TextsOfOthersStayTexts) {
  const std::string nasty = "\"},{\"x\":\"\\ </script>\xe4\xb8\xad\xe2\x80\xa8";
  const std::string text = trace_json(timeline_of(job_with_a_restart(0, nasty)));
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  const auto causes = those(json::parse(text), "i", "first cause");
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_THAT(causes[0]["args"]["text"].get<std::string>(),
              ::testing::StartsWith("\"},{\"x\":\"\\ </script>\xe4\xb8\xad"));
}

TEST(TraceJsonTest, NothingIsAnEmptyTrace) {
  const json trace = json::parse(trace_json(make_timeline({}, {})));
  EXPECT_TRUE(trace["traceEvents"].is_array());
}

}  // namespace
}  // namespace drun::timeline
