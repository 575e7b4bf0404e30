#include "rendezvous/election.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Time kStart{std::chrono::hours(1)};
constexpr Milliseconds kDelay{20};

Config config_of_candidate() {
  Config config;
  config.ticket = "me";
  config.host = "node0";
  return config;
}

std::string leader(const char* ticket, std::int64_t epoch) {
  return encode(LeaderDocument{ticket, epoch, "node0"});
}

// An agent that may lead; each event is followed by a look at the time, as a participant does.
class ElectionMachine {
 public:
  const Config config = config_of_candidate();
  const Keys keys{"job"};
  Outbox outbox;
  Election election{config, keys, outbox};
  Election::Candidate self{true, true, 4, kDelay};
  Time now = kStart;
  RequestId request = 0;
  WatchId key_watch = 0;
  WatchId look_watch = 0;

  void key(const std::optional<std::string>& value) {
    WatchSnapshot snapshot{key_watch, {}};
    if (value) snapshot.entries.push_back({keys.leader, value});
    if (election.on_snapshot(snapshot, now)) note("a new leader");
  }
  void found(bool any) {
    WatchSnapshot snapshot{look_watch, {}};
    if (any) snapshot.entries.push_back({keys.member("other"), "{}"});
    election.on_look(snapshot, now);
  }
  void answer(CommitOutcome outcome) {
    if (election.on_commit({request, outcome, "full"}, now)) note("heard");
  }
  void lead() {
    if (!election.elected()) return;
    election.lead(*election.value());
    self.stays = self.stands = false;
    note("leads");
  }
  void note(const std::string& what) { did_ += ", " + what; }
  void look_and_stand() {
    election.look(self, now);
    election.stand(self, now);
    take();
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Nobody", "Self", "Other"};
    return kNames[static_cast<int>(election.holder())];
  }
  std::string news() {
    std::string is = state();
    if (!election.current()) is += " perhaps";
    if (election.elected()) is += ", elected";
    if (!self.stays && election.has_lost()) is += ", has lost";
    if (const auto due = election.next_deadline(self))
      is += ", due at " + std::to_string((*due - kStart) / std::chrono::milliseconds(1));
    return news_(is, std::exchange(did_, ""));
  }

 private:
  void take() {
    for (const auto& action : outbox.take()) {
      if (const auto* watch = std::get_if<WatchAction>(&action)) {
        const bool of_key = watch->key == keys.leader;
        (of_key ? key_watch : look_watch) = watch->watch;
        note(of_key ? "watches the key" : "looks for " + watch->key.substr(keys.members.size()));
      }
      if (std::holds_alternative<UnwatchAction>(action)) note("ends a watch");
      if (std::holds_alternative<LogAction>(action)) note("warns");
      if (const auto* commit = std::get_if<CommitAction>(&action)) {
        request = commit->request;
        const auto& guard = commit->transaction.guards.at(0).expected;
        const auto stands = decode_leader(*commit->transaction.writes.at(0).value);
        note("stands in epoch " + std::to_string(stands->epoch) +
             (guard ? " in place of what is there" : ""));
      }
    }
  }

  std::string did_;
  test::News news_;
};

test::TableEvents<ElectionMachine> all_events() {
  using Machine = ElectionMachine;
  test::TableEvents<Machine> events = {
      {"begin",
       [](Machine& m) {
         if (!m.election.begun()) m.election.begin(false);
       }},
      {"begin as host",
       [](Machine& m) {
         if (!m.election.begun()) m.election.begin(true);
       }},
      {"no key", [](Machine& m) { m.key({}); }},
      {"key: other", [](Machine& m) { m.key(leader("other", 7)); }},
      {"key: what it wrote", [](Machine& m) { m.key(m.election.standing_as()); }},
      {"key: it, by somebody else", [](Machine& m) { m.key(leader("me", 99)); }},
      {"key: nonsense", [](Machine& m) { m.key("hello"); }},
      {"key: endless epoch", [](Machine& m) { m.key(leader("other", std::int64_t{1} << 62 | 1)); }},
      {"there", [](Machine& m) { m.found(true); }},
      {"not there", [](Machine& m) { m.found(false); }},
      {"not shown", [](Machine& m) { m.election.on_rejected(m.look_watch, m.now); }},
      {"committed", [](Machine& m) { m.answer(CommitOutcome::Committed); }},
      {"refused", [](Machine& m) { m.answer(CommitOutcome::Refused); }},
      {"rejected", [](Machine& m) { m.answer(CommitOutcome::Rejected); }},
      {"unknown", [](Machine& m) { m.answer(CommitOutcome::Unknown); }},
      {"leads", [](Machine& m) { m.lead(); }},
      {"link lost", [](Machine& m) { m.election.on_link_lost(); }},
      {"new session", [](Machine& m) { m.election.on_new_session(); }},
      {"read again",
       [](Machine& m) {
         if (m.election.begun()) m.election.read_again();
       }},
      {"may not stand any more", [](Machine& m) { m.self.stands = false; }},
      {"time", [](Machine& m) { m.now = m.election.next_deadline(m.self).value_or(m.now); }}};
  for (auto& [name, event] : events)
    event = [event = event](Machine& m) {
      event(m);
      m.look_and_stand();
    };
  return events;
}

const std::vector<test::StateRow> kTable = {
    {"Nobody, nothing is known", {}, R"(
  begin -> Nobody perhaps, watches the key
  begin as host -> Nobody, due at 20, watches the key
  no key -> Nobody, due at 20
  key: other -> Other, due at 5000, a new leader
  key: what it wrote; key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody,
      due at 20, a new leader
  there; not there; not shown; committed; refused; rejected; unknown; leads; link lost; new
      session; read again; may not stand any more; time -> nothing
)"},
    {"Nobody, perhaps", {"begin"}, R"(
  no key -> Nobody, due at 20
  key: other -> Other, due at 5000, a new leader
  key: what it wrote; key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody,
      due at 20, a new leader
  read again -> Nobody perhaps, ends a watch, watches the key
  begin; begin as host; there; not there; not shown; committed; refused; rejected; unknown;
      leads; link lost; new session; may not stand any more; time -> nothing
)"},
    {"Nobody, is about to stand", {"begin", "no key"}, R"(
  key: other -> Other, due at 5000, a new leader
  key: what it wrote; key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody,
      due at 20, a new leader
  link lost -> Nobody perhaps
  read again -> Nobody perhaps, ends a watch, watches the key
  may not stand any more -> Nobody
  time -> Nobody, stands in epoch 5
  begin; begin as host; no key; there; not there; not shown; committed; refused; rejected;
      unknown; leads; new session -> nothing
)"},
    {"Nobody, stands", {"begin", "no key", "time"}, R"(
  key: other -> Other, due at 5020, a new leader
  key: what it wrote -> Self, elected, a new leader
  key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody, a new leader
  committed; refused; unknown -> Nobody, due at 1020, heard
  rejected -> Nobody, due at 1020, heard, warns
  link lost -> Nobody perhaps
  new session -> Nobody, due at 1020
  read again -> Nobody perhaps, ends a watch, watches the key
  begin; begin as host; no key; there; not there; not shown; leads; may not stand any more; time
      -> nothing
)"},
    {"Nobody, was rejected", {"begin", "no key", "time", "rejected"}, R"(
  key: other -> Other, due at 5020, a new leader
  key: what it wrote -> Self, elected, a new leader
  key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody, due at 40, a new
      leader
  link lost -> Nobody perhaps
  read again -> Nobody perhaps, ends a watch, watches the key
  may not stand any more -> Nobody
  time -> Nobody, stands in epoch 6
  begin; begin as host; no key; there; not there; not shown; committed; refused; rejected;
      unknown; leads; new session -> nothing
)"},
    {"Self", {"begin", "no key", "time", "key: what it wrote"}, R"(
  no key -> Nobody
  key: other -> Other, due at 5020, a new leader
  key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody, a new leader
  committed; refused; unknown -> Self, elected, heard
  rejected -> Self, elected, heard, warns
  leads -> Self, elected, leads
  link lost -> Self perhaps
  read again -> Self perhaps, ends a watch, watches the key
  begin; begin as host; key: what it wrote; there; not there; not shown; new session; may not
      stand any more; time -> nothing
)"},
    {"Self, leads", {"begin", "no key", "time", "key: what it wrote", "leads"}, R"(
  no key -> Nobody, has lost
  key: other -> Other, has lost, a new leader
  key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody, has lost, a new leader
  leads -> Self, elected, leads
  link lost -> Self perhaps
  read again -> Self perhaps, ends a watch, watches the key
  begin; begin as host; key: what it wrote; there; not there; not shown; committed; refused;
      rejected; unknown; new session; may not stand any more; time -> nothing
)"},
    {"Other", {"begin", "key: other"}, R"(
  no key -> Nobody, due at 20
  key: what it wrote; key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody,
      due at 20, a new leader
  link lost -> Other perhaps
  read again -> Other perhaps, ends a watch, watches the key
  time -> Other, looks for other
  begin; begin as host; key: other; there; not there; not shown; committed; refused; rejected;
      unknown; leads; new session; may not stand any more -> nothing
)"},
    {"Other, is looked for", {"begin", "key: other", "time"}, R"(
  no key; not there -> Nobody, due at 5020, ends a watch
  key: other -> Other, due at 10000, ends a watch
  key: what it wrote; key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody,
      due at 5020, a new leader, ends a watch
  there -> Other, due at 65000, ends a watch
  not shown -> Other, due at 65000
  link lost -> Other perhaps
  read again -> Other perhaps, ends a watch, watches the key
  begin; begin as host; committed; refused; rejected; unknown; leads; new session; may not stand
      any more; time -> nothing
)"},
    {"Other, has lost",
     {"begin", "no key", "time", "key: what it wrote", "leads", "key: other"},
     R"(
  no key -> Nobody, has lost
  key: what it wrote -> Self, elected, a new leader
  key: it, by somebody else; key: nonsense; key: endless epoch -> Nobody, has lost, a new leader
  link lost -> Other perhaps
  read again -> Other perhaps, ends a watch, watches the key
  begin; begin as host; key: other; there; not there; not shown; committed; refused; rejected;
      unknown; leads; new session; may not stand any more; time -> nothing
)"}};

TEST(ElectionTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(all_events(), kTable, {"Nobody", "Self", "Other"});
}

}  // namespace
}  // namespace drun::rendezvous
