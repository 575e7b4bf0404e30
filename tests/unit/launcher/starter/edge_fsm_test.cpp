#include "launcher/starter/edge_fsm.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::launcher {
namespace {

class EndOfLauncher {
 public:
  EdgeFsm fsm;

  void take(EdgeFsm::Step step) {
    constexpr const char* kSteps[] = {"", ", waits", ", kills", ", tells"};
    did_ += kSteps[static_cast<int>(step)];
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Running", "Silent", "Exited", "Told"};
    return kNames[static_cast<int>(fsm.state())];
  }
  std::string news() {
    const std::string why = std::exchange(why_, fsm.given_up());
    if (why != fsm.given_up()) did_ += ": " + fsm.given_up();
    return news_(state(), std::exchange(did_, ""));
  }

 private:
  std::string did_;
  std::string why_;
  test::News news_;
};

const test::TableEvents<EndOfLauncher> kEvents = {
    {"exit", [](EndOfLauncher& m) { m.take(m.fsm.on_exit()); }},
    {"streams close", [](EndOfLauncher& m) { m.take(m.fsm.on_silence("")); }},
    {"is given up", [](EndOfLauncher& m) { m.take(m.fsm.on_silence("no drun")); }},
    {"input closed", [](EndOfLauncher& m) { m.take(m.fsm.on_input_closed()); }},
    {"limit", [](EndOfLauncher& m) { m.take(m.fsm.on_limit()); }}};

const std::vector<test::StateRow> kTable = {{"Running", {}, R"(
  exit -> Exited, waits
  streams close -> Silent, waits
  is given up -> Silent, waits: no drun
  input closed -> Running, waits
  limit -> Running, kills: its connection was closed, and did not end
)"},
                                            {"Silent", {"streams close"}, R"(
  exit -> Told, tells
  input closed -> Silent, waits
  limit -> Silent, kills: its connection was closed, and did not end
  streams close; is given up -> nothing
)"},
                                            {"Silent, given up", {"is given up"}, R"(
  exit -> Told, tells
  input closed -> Silent, waits
  limit -> Silent, kills
  streams close; is given up -> nothing
)"},
                                            {"Exited", {"exit"}, R"(
  streams close; limit -> Told, tells
  is given up -> Told, tells: no drun
  input closed -> Exited, waits
  exit -> nothing
)"},
                                            {"Told", {"exit", "streams close"}, R"(
  exit; streams close; is given up; input closed; limit -> nothing
)"}};

TEST(EdgeFsmTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Running", "Silent", "Exited", "Told"});
}

TEST(EdgeFsmTest, RunsUntilItHasExited) {
  EdgeFsm fsm;
  EXPECT_TRUE(fsm.runs());
  (void)fsm.on_silence("");
  EXPECT_TRUE(fsm.runs());
  (void)fsm.on_exit();
  EXPECT_FALSE(fsm.runs());
  EdgeFsm other;
  (void)other.on_exit();
  EXPECT_FALSE(other.runs());
}

}  // namespace
}  // namespace drun::launcher
