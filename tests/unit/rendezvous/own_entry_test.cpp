#include "rendezvous/own_entry.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Time kStart{std::chrono::hours(1)};

class EntryMachine {
 public:
  OwnEntry entry;
  Time now = kStart;
  RequestId last = 0;

  void send() {
    if (entry.due(now)) entry.on_sent(++last);
  }
  void answer(CommitOutcome outcome, RequestId request) {
    constexpr const char* kNames[] = {"", "written", "rejected", "refused", "lost"};
    const auto answer = entry.on_commit({request, outcome, "it is full"}, now);
    if (answer != OwnEntry::Answer::None)
      did_ += std::string(", ") + kNames[static_cast<int>(answer)];
    if (answer == OwnEntry::Answer::Rejected && entry.first_rejection())
      did_ += " for the first time";
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Due", "Sent", "Outdated", "Written"};
    return kNames[static_cast<int>(entry.state())];
  }
  std::string news() {
    std::string is = state();
    if (entry.retry_at() && *entry.retry_at() > now)
      is += " in " + std::to_string((*entry.retry_at() - now) / std::chrono::milliseconds(1));
    if (entry.rejections().any()) is += ", is rejected";
    if (entry.refused_too_often()) is += ", was refused too often";
    if (!entry.was_written()) is += ", never written";
    if (entry.written()) is += ", all of it";
    return news_(is, std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<EntryMachine> kEvents = {
    {"change", [](EntryMachine& m) { m.entry.change(); }},
    {"send", [](EntryMachine& m) { m.send(); }},
    {"new session", [](EntryMachine& m) { m.entry.on_new_session(); }},
    {"committed", [](EntryMachine& m) { m.answer(CommitOutcome::Committed, m.last); }},
    {"rejected", [](EntryMachine& m) { m.answer(CommitOutcome::Rejected, m.last); }},
    {"refused", [](EntryMachine& m) { m.answer(CommitOutcome::Refused, m.last); }},
    {"unknown", [](EntryMachine& m) { m.answer(CommitOutcome::Unknown, m.last); }},
    {"another was committed", [](EntryMachine& m) { m.answer(CommitOutcome::Committed, 99); }},
    {"time", [](EntryMachine& m) { m.now = std::max(m.now, m.entry.retry_at().value_or(m.now)); }}};

const std::vector<test::StateRow> kTable = {
    {"Due", {}, R"(
  send -> Sent, never written
  change; new session; committed; rejected; refused; unknown; another was committed; time ->
      nothing
)"},
    {"Sent", {"send"}, R"(
  change -> Outdated, never written
  new session -> Due, never written
  committed -> Written, all of it, written
  rejected -> Due in 200, is rejected, never written, rejected for the first time
  refused -> Due in 200, never written, refused
  unknown -> Due, never written, lost
  send; another was committed; time -> nothing
)"},
    {"Outdated", {"send", "change"}, R"(
  new session -> Due, never written
  committed -> Due, written
  rejected -> Due in 200, is rejected, never written, rejected for the first time
  refused -> Due in 200, never written, refused
  unknown -> Due, never written, lost
  change; send; another was committed; time -> nothing
)"},
    {"Written", {"send", "committed"}, R"(
  change; new session -> Due
  send; committed; rejected; refused; unknown; another was committed; time -> nothing
)"},
    {"Due, again", {"send", "committed", "change"}, R"(
  send -> Sent
  change; new session; committed; rejected; refused; unknown; another was committed; time ->
      nothing
)"},
    {"Due, was rejected", {"send", "rejected"}, R"(
  time -> Due, is rejected, never written
  change; send; new session; committed; rejected; refused; unknown; another was committed ->
      nothing
)"},
    {"Sent, was rejected", {"send", "rejected", "time", "send"}, R"(
  change -> Outdated, is rejected, never written
  new session -> Due, is rejected, never written
  committed -> Written, all of it, written
  rejected -> Due in 400, is rejected, never written, rejected
  refused -> Due in 200, is rejected, never written, refused
  unknown -> Due, is rejected, never written, lost
  send; another was committed; time -> nothing
)"},
    {"Due, was refused", {"send", "refused"}, R"(
  time -> Due, never written
  change; send; new session; committed; rejected; refused; unknown; another was committed ->
      nothing
)"},
    {"Sent, was refused four times",
     {"send", "refused", "time", "send", "refused", "time", "send", "refused", "time", "send",
      "refused", "time", "send"},
     R"(
  change -> Outdated, never written
  new session -> Due, never written
  committed -> Written, all of it, written
  rejected -> Due in 200, is rejected, never written, rejected for the first time
  refused -> Due in 200, was refused too often, never written, refused
  unknown -> Due, never written, lost
  send; another was committed; time -> nothing
)"}};

TEST(OwnEntryTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Due", "Sent", "Outdated", "Written"});
}

}  // namespace
}  // namespace drun::rendezvous
