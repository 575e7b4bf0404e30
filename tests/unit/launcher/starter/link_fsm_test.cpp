#include "launcher/starter/link_fsm.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::launcher {
namespace {

using std::chrono::seconds;

class Link {
 public:
  LinkFsm fsm{true, seconds(30)};

  // Just within the limit, counted from the last bytes; and just beyond it.
  void time(seconds since) { take(fsm.on_time(LinkFsm::Time() + since)); }
  void take(const std::optional<std::string>& why) {
    if (why) did_ += ", tells" + (why->empty() ? "" : ": " + *why);
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Awaited", "Greeted", "Over"};
    return kNames[static_cast<int>(fsm.state())];
  }
  std::string news() { return news_(state(), std::exchange(did_, "")); }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<Link> kEvents = {{"frame", [](Link& m) { m.fsm.on_frame(); }},
                                         {"end", [](Link& m) { m.take(m.fsm.on_end()); }},
                                         {"broken", [](Link& m) { m.take(m.fsm.on_broken()); }},
                                         {"30 s", [](Link& m) { m.time(seconds(30)); }},
                                         {"31 s", [](Link& m) { m.time(seconds(31)); }},
                                         {"bytes, 31 s",
                                          [](Link& m) {
                                            m.fsm.on_bytes(LinkFsm::Time() + seconds(1));
                                            m.time(seconds(31));
                                          }},
                                         {"ended", [](Link& m) { m.fsm.end(); }}};

const std::vector<test::StateRow> kTable = {{"Awaited", {}, R"(
  frame -> Greeted
  end -> Over, tells
  broken -> Over, tells: what answers there is no drun
  ended -> Over
  30 s; 31 s; bytes, 31 s -> nothing
)"},
                                            {"Greeted", {"frame"}, R"(
  end -> Over, tells
  broken -> Over, tells: what it sent is not drun's
  31 s -> Over, tells: nothing was heard of it for 30 s
  ended -> Over
  frame; 30 s; bytes, 31 s -> nothing
)"},
                                            {"Over", {"end"}, R"(
  frame; end; broken; 30 s; 31 s; bytes, 31 s; ended -> nothing
)"}};

TEST(LinkFsmTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Awaited", "Greeted", "Over"});
}

TEST(LinkFsmTest, OnlyAGreetedOneIsSpokenToAndItStaysGreeted) {
  LinkFsm fsm(true, seconds(30));
  EXPECT_FALSE(fsm.greeted());
  EXPECT_FALSE(fsm.speaks());
  fsm.on_frame();
  EXPECT_TRUE(fsm.greeted());
  EXPECT_TRUE(fsm.speaks());
  fsm.end();
  EXPECT_TRUE(fsm.greeted());
  EXPECT_FALSE(fsm.speaks());
  LinkFsm unmarked(false, seconds(45));
  EXPECT_TRUE(unmarked.greeted());
  EXPECT_TRUE(unmarked.speaks());
  LinkFsm mute(true, seconds(30));
  mute.end();
  EXPECT_FALSE(mute.greeted());
}

}  // namespace
}  // namespace drun::launcher
