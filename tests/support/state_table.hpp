// A state machine as a table: a row for each state, and in it what every event does there. See
// event_table.hpp.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/event_table.hpp"

namespace drun::test {

struct StateRow {
  std::string state;  // the machine's state(); behind a comma what else matters
  Way way;            // leads there
  std::string does;   // what_each_does()
};

// For a machine's news(): what it is like, if that has changed, and what it has done meanwhile.
class News {
 public:
  std::string operator()(const std::string& is, const std::string& did = {}) {
    const bool same = is == std::exchange(was_, is) && did.empty();
    return same ? "" : is + did;
  }

 private:
  std::string was_;
};

// `states`: each must have a row.
template <typename Machine>
void expect_table(const TableEvents<Machine>& events, const std::vector<StateRow>& table,
                  const std::vector<std::string>& states) {
  const std::function<std::unique_ptr<Machine>()> make = [] {
    auto machine = std::make_unique<Machine>();
    (void)machine->news();
    return machine;
  };
  std::set<std::string> shown;
  for (const StateRow& row : table) {
    SCOPED_TRACE(row.state);
    const auto machine = make();
    go(*machine, events, row.way);
    const std::string state = row.state.substr(0, row.state.find(','));
    EXPECT_EQ(machine->state(), state);
    shown.insert(state);
    EXPECT_EQ(what_each_does(events, row.way, make), row.does);
  }
  EXPECT_EQ(shown, std::set<std::string>(states.begin(), states.end()));
}

}  // namespace drun::test
