#include "store/server/job_places.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};
constexpr const char* kJob = "drun/a/";

class PlaceMachine {
 public:
  JobPlaces places;
  Time now = kStart;
  std::string said;

  void hear(std::uint64_t generation, const std::string& host) {
    said = places.hear(kJob, generation, {host, 1}, now) ? ", news" : "";
  }
  [[nodiscard]] bool is_there(Time when) const { return places.find(kJob, 0, when).generation > 0; }
  [[nodiscard]] std::string state() const {
    if (!is_there(now)) return "Unknown";
    return is_there(now + std::chrono::hours(1'000)) ? "Known" : "Heard";
  }
  std::string news() {
    const auto moved = places.find(kJob, 0, now);
    const std::string where = moved.generation == 0 ? ""
                                                    : ", " + std::to_string(moved.generation) +
                                                          " at " + std::string(moved.host);
    return news_(state() + where, std::exchange(said, {}));
  }

 private:
  test::News news_;
};

const test::TableEvents<PlaceMachine> kEvents = {
    {"others say 2 at b", [](PlaceMachine& m) { m.hear(2, "b"); }},
    {"others say 3 at c", [](PlaceMachine& m) { m.hear(3, "c"); }},
    {"others say 4 at d", [](PlaceMachine& m) { m.hear(4, "d"); }},
    {"knows 3 at k",
     [](PlaceMachine& m) {
       m.places.know(kJob, 3, {"k", 1});
     }},
    {"forgets", [](PlaceMachine& m) { m.places.forget(kJob); }},
    {"2 was lost", [](PlaceMachine& m) { m.places.doubt(kJob, 2); }},
    {"3 was lost", [](PlaceMachine& m) { m.places.doubt(kJob, 3); }},
    {"time, almost", [](PlaceMachine& m) { m.now += JobPlaces::kHearsay - Milliseconds(1); }},
    {"time", [](PlaceMachine& m) { m.now += JobPlaces::kHearsay; }}};

const std::vector<test::StateRow> kTable = {
    {"Unknown", {}, R"(
  others say 2 at b -> Heard, 2 at b, news
  others say 3 at c -> Heard, 3 at c, news
  others say 4 at d -> Heard, 4 at d, news
  knows 3 at k -> Known, 3 at k
  forgets; 2 was lost; 3 was lost; time, almost; time -> nothing
)"},
    {"Unknown, was heard of", {"others say 3 at c", "time"}, R"(
  others say 2 at b -> Heard, 2 at b, news
  others say 3 at c -> Heard, 3 at c, news
  others say 4 at d -> Heard, 4 at d, news
  knows 3 at k -> Known, 3 at k
  forgets; 2 was lost; 3 was lost; time, almost; time -> nothing
)"},
    {"Heard", {"others say 3 at c"}, R"(
  others say 3 at c -> Heard, 3 at c, news
  others say 4 at d -> Heard, 4 at d, news
  knows 3 at k -> Known, 3 at k
  forgets; 3 was lost; time -> Unknown
  others say 2 at b; 2 was lost; time, almost -> nothing
)"},
    {"Known", {"knows 3 at k"}, R"(
  others say 4 at d -> Heard, 4 at d, news
  forgets -> Unknown
  others say 2 at b; others say 3 at c; knows 3 at k; 2 was lost; 3 was lost; time, almost; time
      -> nothing
)"}};

TEST(JobPlacesTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Unknown", "Heard", "Known"});
}

std::string text(const control::Moved& moved) {
  return std::to_string(moved.generation) + " " + std::string(moved.host) + ":" +
         std::to_string(moved.port);
}

TEST(JobPlacesTest, FindsOnlyStoresOfAHigherGeneration) {
  JobPlaces places;
  places.know("drun/b/", 3, {"b", 2});
  EXPECT_EQ(text(places.find("drun/b/", 2, kStart)), "3 b:2");
  EXPECT_EQ(places.find("drun/b/", 3, kStart).generation, 0U);
  EXPECT_EQ(places.find("drun/a/", 0, kStart).generation, 0U);
  EXPECT_EQ(text(places.any(2, kStart)), "3 b:2");
  EXPECT_EQ(places.any(3, kStart).generation, 0U);
}

TEST(JobPlacesTest, HearsOfNoMoreJobsThanThatButForgetsOldOnesFirst) {
  JobPlaces places;
  for (std::size_t job = 0; job < JobPlaces::kMost; ++job)
    EXPECT_TRUE(places.hear(std::to_string(job), 2, {"a", 1}, kStart));
  EXPECT_FALSE(places.hear("one more", 2, {"a", 1}, kStart));
  EXPECT_TRUE(places.hear("7", 3, {"b", 1}, kStart)) << "it is known";
  EXPECT_TRUE(places.hear("one more", 2, {"a", 1}, kStart + JobPlaces::kHearsay));
}

}  // namespace
}  // namespace drun::store
