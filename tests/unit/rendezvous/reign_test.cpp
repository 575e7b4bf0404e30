#include "rendezvous/reign.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

class ReignMachine {
 public:
  Reign reign;

  void answer(RequestId request, CommitOutcome outcome) {
    if (reign.on_commit({request, outcome})) did_ += ", to its last word";
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Lasts", "LastWord", "JobEnded", "Deposed"};
    return kNames[static_cast<int>(reign.state())];
  }
  std::string news() { return news_(state(), std::exchange(did_, "")); }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<ReignMachine> kEvents = {
    {"last word",
     [](ReignMachine& m) {
       if (m.reign.lasts()) m.reign.on_last_word_sent(7);
     }},
    {"committed", [](ReignMachine& m) { m.answer(7, CommitOutcome::Committed); }},
    {"refused", [](ReignMachine& m) { m.answer(7, CommitOutcome::Refused); }},
    {"rejected", [](ReignMachine& m) { m.answer(7, CommitOutcome::Rejected); }},
    {"unknown", [](ReignMachine& m) { m.answer(7, CommitOutcome::Unknown); }},
    {"another was committed", [](ReignMachine& m) { m.answer(8, CommitOutcome::Committed); }},
    {"another was refused", [](ReignMachine& m) { m.answer(8, CommitOutcome::Refused); }},
    {"deposed", [](ReignMachine& m) { m.reign.depose(); }}};

const std::vector<test::StateRow> kTable = {{"Lasts", {}, R"(
  last word -> LastWord
  deposed -> Deposed
  committed; refused; rejected; unknown; another was committed; another was refused -> nothing
)"},
                                            {"LastWord", {"last word"}, R"(
  committed -> JobEnded, to its last word
  refused -> Deposed, to its last word
  rejected; unknown -> Lasts, to its last word
  deposed -> Deposed
  last word; another was committed; another was refused -> nothing
)"},
                                            {"JobEnded", {"last word", "committed"}, R"(
  deposed -> Deposed
  last word; committed; refused; rejected; unknown; another was committed; another was refused
      -> nothing
)"},
                                            {"Deposed", {"deposed"}, R"(
  last word; committed; refused; rejected; unknown; another was committed; another was refused;
      deposed -> nothing
)"}};

TEST(ReignTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Lasts", "LastWord", "JobEnded", "Deposed"});
}

}  // namespace
}  // namespace drun::rendezvous
