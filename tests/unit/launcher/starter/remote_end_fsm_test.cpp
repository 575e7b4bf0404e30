#include "launcher/starter/remote_end_fsm.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::launcher {
namespace {

class EndMachine {
 public:
  RemoteEndFsm fsm;

  void note(const char* what) { did_ += std::string(", ") + what; }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Idle",           "Running",    "Draining",
                                      "Told",           "OrphanIdle", "OrphanRunning",
                                      "OrphanDraining", "OrphanTold"};
    return kNames[static_cast<int>(fsm.state())];
  }
  std::string news() { return news_(state(), std::exchange(did_, "")); }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<EndMachine> kEvents = {
    {"order",
     [](EndMachine& m) {
       if (m.fsm.takes_order()) m.fsm.on_agent_started();
     }},
    {"agent started", [](EndMachine& m) { m.fsm.on_agent_started(); }},
    {"agent ended", [](EndMachine& m) { m.fsm.on_agent_ended(); }},
    {"output read",
     [](EndMachine& m) {
       if (m.fsm.on_output_read()) m.note("tells the end");
     }},
    {"starter gone", [](EndMachine& m) {
       if (m.fsm.on_starter_gone()) m.note("is alone");
     }}};

const std::vector<test::StateRow> kTable = {
    {"Idle", {}, R"(
  order; agent started -> Running
  starter gone -> OrphanIdle, is alone
  agent ended; output read -> nothing
)"},
    {"Running", {"order"}, R"(
  agent ended -> Draining
  starter gone -> OrphanRunning, is alone
  order; agent started; output read -> nothing
)"},
    {"Draining", {"order", "agent ended"}, R"(
  output read -> Told, tells the end
  starter gone -> OrphanDraining, is alone
  order; agent started; agent ended -> nothing
)"},
    {"Told", {"order", "agent ended", "output read"}, R"(
  starter gone -> OrphanTold, is alone
  order; agent started; agent ended; output read -> nothing
)"},
    {"OrphanIdle", {"starter gone"}, R"(
  order; agent started -> OrphanRunning
  agent ended; output read; starter gone -> nothing
)"},
    {"OrphanRunning", {"order", "starter gone"}, R"(
  agent ended -> OrphanDraining
  order; agent started; output read; starter gone -> nothing
)"},
    {"OrphanDraining", {"order", "agent ended", "starter gone"}, R"(
  output read -> OrphanTold, tells the end
  order; agent started; agent ended; starter gone -> nothing
)"},
    {"OrphanTold", {"order", "agent ended", "output read", "starter gone"}, R"(
  order; agent started; agent ended; output read; starter gone -> nothing
)"}};

TEST(RemoteEndFsmTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable,
                     {"Idle", "Running", "Draining", "Told", "OrphanIdle", "OrphanRunning",
                      "OrphanDraining", "OrphanTold"});
}

TEST(RemoteEndFsmTest, SaysInEveryStateWhatHoldsThere) {
  struct Row {
    test::Way way;
    const char* holds;
  };
  const std::vector<Row> table = {
      {{}, "takes an order"},
      {{"order"}, "runs, holds output back"},
      {{"order", "agent ended"}, ""},
      {{"order", "agent ended", "output read"}, ""},
      {{"starter gone"}, "takes an order, over"},
      {{"order", "starter gone"}, "runs"},
      {{"order", "agent ended", "starter gone"}, ""},
      {{"order", "agent ended", "output read", "starter gone"}, "over"}};
  for (const Row& row : table) {
    EndMachine machine;
    test::go(machine, kEvents, row.way);
    std::string holds;
    const auto add = [&holds](bool does, const char* what) {
      if (does) holds += (holds.empty() ? "" : ", ") + std::string(what);
    };
    add(machine.fsm.takes_order(), "takes an order");
    add(machine.fsm.running(), "runs");
    add(machine.fsm.holds_output_back(), "holds output back");
    add(machine.fsm.over(), "over");
    EXPECT_EQ(holds, row.holds) << machine.state();
  }
}

}  // namespace
}  // namespace drun::launcher
