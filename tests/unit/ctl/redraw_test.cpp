#include "ctl/redraw.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::ctl {
namespace {

using std::chrono::milliseconds;

constexpr Redraw::Time kStart{std::chrono::hours(1)};

// Shown at the start.
class RedrawMachine {
 public:
  explicit RedrawMachine(bool in_place = false) : redraw(in_place) { redraw.on_shown(kStart); }

  Redraw redraw;
  Redraw::Time now = kStart;

  [[nodiscard]] std::string state() const {
    return redraw.state() == Redraw::State::Same ? "Same" : "Changed";
  }
  std::string news() {
    const auto wait =
        std::chrono::duration_cast<milliseconds>(redraw.wait_until(now) - now).count();
    return news_(state() + (redraw.is_due(now) ? ", due" : "") + ", waits " + std::to_string(wait) +
                 " ms");
  }

 private:
  test::News news_;
};

class TerminalMachine : public RedrawMachine {
 public:
  TerminalMachine() : RedrawMachine(true) {}
};

template <typename Machine>
test::TableEvents<Machine> events() {
  return {{"a change", [](Machine& m) { m.redraw.on_change(); }},
          {"it is shown", [](Machine& m) { m.redraw.on_shown(m.now); }},
          {"199 ms", [](Machine& m) { m.now += milliseconds(199); }},
          {"200 ms", [](Machine& m) { m.now += milliseconds(200); }},
          {"a second", [](Machine& m) { m.now += milliseconds(1'000); }}};
}

const std::vector<test::StateRow> kTable = {{"Same", {}, R"(
  a change -> Changed, waits 200 ms
  it is shown; 199 ms; 200 ms; a second -> nothing
)"},
                                            {"Changed, just after", {"a change"}, R"(
  it is shown -> Same, waits 86400000 ms
  199 ms -> Changed, waits 1 ms
  200 ms -> Changed, due, waits 0 ms
  a second -> Changed, due, waits -800 ms
  a change -> nothing
)"},
                                            {"Changed, due", {"a change", "200 ms"}, R"(
  it is shown -> Same, waits 86400000 ms
  199 ms -> Changed, due, waits -199 ms
  200 ms -> Changed, due, waits -200 ms
  a second -> Changed, due, waits -1000 ms
  a change -> nothing
)"}};

const std::vector<test::StateRow> kTerminalTable = {{"Same", {}, R"(
  a change -> Changed, waits 200 ms
  200 ms; a second -> Same, due, waits 1000 ms
  it is shown; 199 ms -> nothing
)"},
                                                    {"Same, due", {"a second"}, R"(
  a change -> Changed, due, waits -800 ms
  it is shown -> Same, waits 1000 ms
  199 ms; 200 ms; a second -> nothing
)"},
                                                    {"Changed, just after", {"a change"}, R"(
  it is shown -> Same, waits 1000 ms
  199 ms -> Changed, waits 1 ms
  200 ms -> Changed, due, waits 0 ms
  a second -> Changed, due, waits -800 ms
  a change -> nothing
)"}};

TEST(RedrawTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(events<RedrawMachine>(), kTable, {"Same", "Changed"});
}

TEST(RedrawTest, OnATerminalTheTableSaysThatTimesGoOn) {
  test::expect_table(events<TerminalMachine>(), kTerminalTable, {"Same", "Changed"});
}

}  // namespace
}  // namespace drun::ctl
