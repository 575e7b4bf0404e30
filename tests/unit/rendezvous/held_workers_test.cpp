#include "rendezvous/held_workers.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

class WorkersMachine {
 public:
  HeldWorkers workers;

  void note(const char* what) { did_ += std::string(", ") + what; }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"None",   "Running",  "Succeeded",
                                      "Failed", "Stopping", "Killing"};
    return kNames[static_cast<int>(workers.state())];
  }
  std::string news() {
    std::string is = state();
    if (workers.round() != 0) is += " of " + std::to_string(workers.round());
    return news_(is, std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<WorkersMachine> kEvents = {{"start",
                                                    [](WorkersMachine& m) {
                                                      if (!m.workers.any()) m.workers.start(3);
                                                    }},
                                                   {"succeeded",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.on_succeeded(3)) m.note("news");
                                                    }},
                                                   {"those of round 2 succeeded",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.on_succeeded(2)) m.note("news");
                                                    }},
                                                   {"failed",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.on_failed(3)) m.note("news");
                                                    }},
                                                   {"those of round 2 failed",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.on_failed(2)) m.note("news");
                                                    }},
                                                   {"stop",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.stop(false))
                                                        m.note("tell them");
                                                    }},
                                                   {"kill",
                                                    [](WorkersMachine& m) {
                                                      if (m.workers.stop(true)) m.note("tell them");
                                                    }},
                                                   {"stopped", [](WorkersMachine& m) {
                                                      if (m.workers.on_stopped() == 3)
                                                        m.note("has left 3");
                                                    }}};

const std::vector<test::StateRow> kTable = {{"None", {}, R"(
  start -> Running of 3
  succeeded; those of round 2 succeeded; failed; those of round 2 failed; stop; kill; stopped ->
      nothing
)"},
                                            {"Running", {"start"}, R"(
  succeeded -> Succeeded of 3, news
  failed -> Failed of 3, news
  stop -> Stopping of 3, tell them
  kill -> Killing of 3, tell them
  stopped -> None, has left 3
  start; those of round 2 succeeded; those of round 2 failed -> nothing
)"},
                                            {"Succeeded", {"start", "succeeded"}, R"(
  stop -> Stopping of 3, tell them
  kill -> Killing of 3, tell them
  stopped -> None, has left 3
  start; succeeded; those of round 2 succeeded; failed; those of round 2 failed -> nothing
)"},
                                            {"Failed", {"start", "failed"}, R"(
  stop -> Stopping of 3, tell them
  kill -> Killing of 3, tell them
  stopped -> None, has left 3
  start; succeeded; those of round 2 succeeded; failed; those of round 2 failed -> nothing
)"},
                                            {"Stopping", {"start", "stop"}, R"(
  kill -> Killing of 3, tell them
  stopped -> None, has left 3
  start; succeeded; those of round 2 succeeded; failed; those of round 2 failed; stop -> nothing
)"},
                                            {"Killing", {"start", "kill"}, R"(
  stopped -> None, has left 3
  start; succeeded; those of round 2 succeeded; failed; those of round 2 failed; stop; kill ->
      nothing
)"}};

TEST(HeldWorkersTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable,
                     {"None", "Running", "Succeeded", "Failed", "Stopping", "Killing"});
}

TEST(HeldWorkersTest, SaysInEveryStateWhatHoldsThere) {
  struct Row {
    test::Way way;
    const char* holds;
  };
  const std::vector<Row> table = {{{}, ""},
                                  {{"start"}, "any, run 3, need a lease"},
                                  {{"start", "succeeded"}, "any, succeeded"},
                                  {{"start", "failed"}, "any"},
                                  {{"start", "stop"}, "any, stop asked, need a lease"},
                                  {{"start", "kill"}, "any, stop asked"}};
  for (const Row& row : table) {
    WorkersMachine machine;
    test::go(machine, kEvents, row.way);
    const HeldWorkers& workers = machine.workers;
    std::string holds = workers.any() ? "any" : "";
    if (workers.run(3)) holds += ", run 3";
    if (workers.run(2)) holds += ", run 2";
    if (workers.succeeded()) holds += ", succeeded";
    if (workers.stop_asked()) holds += ", stop asked";
    if (workers.need_a_lease()) holds += ", need a lease";
    EXPECT_EQ(holds, row.holds) << machine.state();
  }
}

}  // namespace
}  // namespace drun::rendezvous
