// The machine of a TCPStore connection as a table: every state, every event.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"
#include "store/client/client_fsm.hpp"
#include "support/event_table.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Time = ClientFsm::Time;

enum class State { Idle, Busy, Closed };
constexpr const char* kStateNames[] = {"Idle", "Busy", "Closed"};

// Replies have their integers as this machine has them: little-endian.
std::string eight_bytes(std::uint64_t value) {
  std::string bytes;
  append(bytes, value);
  return bytes;
}

// A machine, its clock, and what has become of it.
class Machine {
 public:
  explicit Machine(TcpStoreVersion version = TcpStoreVersion::Torch2_2)
      : calls_(version, {}), fsm_({"10.0.0.1", 29500}, version, 1'000) {
    know("set", calls_.set("k", "v"));
    know("add", calls_.add("k", 1));
    know("wait", calls_.wait({"k"}));
    know("get", calls_.get("k"));
    know("try_get", calls_.try_get("k"));
    know("queue_push", calls_.queue_push("q", "v"));
    requests_.emplace_back("cancel", "\x0c");
  }

  const ClientCalls& calls() const { return calls_; }
  ClientFsm& fsm() { return fsm_; }

  [[nodiscard]] State state() const {
    return !fsm_.open() ? State::Closed : fsm_.idle() ? State::Idle : State::Busy;
  }
  template <typename T>
  void start(const std::string& name, TypedCall<T> call) {
    fsm_.start(std::move(call.call), 10s, now_, [this, name](const Result<tcpstore::Reply>& reply) {
      outcomes_ += ", " + name + " ";
      if (!reply)
        outcomes_ += "fails: " + reply.error().code().message();
      else if (reply->values.empty())
        outcomes_ += "is " + std::to_string(reply->integer);
      else
        outcomes_ += "is '" + reply->values.front() + "'";
    });
  }
  void send(std::size_t bytes) {
    const std::size_t size = std::min(bytes, fsm_.output().size());
    sent_ += size;
    fsm_.on_sent(size);
  }
  void at(std::chrono::milliseconds before_due) {
    now_ = std::max(now_, fsm_.next_deadline().value_or(now_ + 1h) - before_due);
    fsm_.on_time(now_);
  }

  std::string news() {
    std::string text = kStateNames[static_cast<int>(state())];
    if (!fsm_.output().empty()) text += ", " + std::to_string(fsm_.output().size()) + " unsent";
    std::string more = requests();
    for (auto& outcome : fsm_.take_outcomes())
      outcome.finished(std::move(outcome.result));
    more += std::exchange(outcomes_, {});
    const auto due = fsm_.next_deadline();
    const bool same = text == told_ && due == told_due_ && more.empty();
    told_ = text;
    told_due_ = due;
    if (due) text += ", due in " + std::to_string((*due - now_) / 1ms);
    return same ? "" : text + more;
  }

 private:
  template <typename T>
  void know(const std::string& name, const TypedCall<T>& call) {
    const auto& steps = call.call.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].bytes.empty()) continue;  // the version has no such request
      requests_.emplace_back(name + (i == 0 ? "" : " (then)"), steps[i].bytes);
    }
  }
  // What has become output since the last call.
  std::string requests() {
    const std::size_t made = sent_ + fsm_.output().size();
    std::string text;
    if (made > made_) {
      std::string_view fresh = fsm_.output().substr(fsm_.output().size() - (made - made_));
      while (!fresh.empty()) {
        const auto found =
            std::find_if(requests_.begin(), requests_.end(),
                         [fresh](const auto& each) { return fresh.starts_with(each.second); });
        if (found == requests_.end()) return text + ", sends something else";
        text += ", sends " + found->first;
        fresh.remove_prefix(found->second.size());
      }
    }
    made_ = std::max(made_, made);
    return text;
  }

  ClientCalls calls_;
  ClientFsm fsm_;
  Time now_{1h};
  std::vector<std::pair<std::string, std::string>> requests_;
  std::size_t sent_ = 0, made_ = 0;  // bytes
  std::string outcomes_;
  std::string told_ = "Idle";
  std::optional<Time> told_due_;
};

test::TableEvents<Machine> all_events() {
  test::TableEvents<Machine> events = {
      {"set", [](Machine& m) { m.start("set", m.calls().set("k", "v")); }},
      {"add", [](Machine& m) { m.start("add", m.calls().add("k", 1)); }},
      {"wait", [](Machine& m) { m.start("wait", m.calls().wait({"k"})); }},
      {"get", [](Machine& m) { m.start("get", m.calls().get("k")); }},
      {"try_get", [](Machine& m) { m.start("try_get", m.calls().try_get("k")); }},
      {"queue_push", [](Machine& m) { m.start("queue_push", m.calls().queue_push("q", "v")); }},
      {"a byte has left", [](Machine& m) { m.send(1); }},
      {"all has left", [](Machine& m) { m.send(1'000); }}};
  const std::vector<std::pair<const char*, std::string>> received = {
      {"byte 0", std::string(1, '\0')},
      {"byte 1", "\1"},
      {"byte 7", "\7"},
      {"bytes 0 1", {"\0\1", 2}},
      {"a value", eight_bytes(1) + "v"},
      {"an integer", eight_bytes(7)},
      {"half an integer", eight_bytes(7).substr(0, 4)},
      {"too much", eight_bytes(1'001)}};
  for (const auto& [name, bytes] : received)
    events.emplace_back(name, [text = bytes](Machine& m) { m.fsm().on_received(text); });
  events.emplace_back("closed",
                      [](Machine& m) { m.fsm().on_closed(Error(Errc::Closed, "it closed it")); });
  events.emplace_back("early", [](Machine& m) { m.at(1ms); });
  events.emplace_back("due", [](Machine& m) { m.at(0ms); });
  return events;
}

struct StateRow {
  State state;
  const char* what;
  TcpStoreVersion version;
  test::Way way;
  const char* does;
};

constexpr auto kNew = TcpStoreVersion::Torch2_2;
constexpr auto kOld = TcpStoreVersion::Torch1_13;  // cancels nothing

const std::vector<StateRow> kTable = {
    {State::Idle, "", kNew, {}, R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  byte 0; byte 1; byte 7; bytes 0 1; a value; an integer; half an integer; too much; closed ->
      Closed
  a byte has left; all has left; early; due -> nothing
)"},
    {State::Idle, "after a call", kNew, {"add", "all has left", "an integer"}, R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  byte 0; byte 1; byte 7; bytes 0 1; a value; an integer; half an integer; too much; closed ->
      Closed
  a byte has left; all has left; early; due -> nothing
)"},
    {State::Busy, "a set is leaving", kNew, {"set", "a byte has left"}, R"(
  set -> Busy, 39 unsent, due in 10000, sends set
  add -> Busy, 38 unsent, due in 10000, sends add
  wait; get -> Busy, 38 unsent, due in 10000, sends wait
  try_get -> Busy, 38 unsent, due in 10000, sends try_get
  queue_push -> Busy, 39 unsent, due in 10000, sends queue_push
  a byte has left -> Busy, 18 unsent, due in 10000
  all has left -> Idle, set is 0
  byte 0; byte 1; byte 7; bytes 0 1; a value; an integer; half an integer; too much -> Closed,
      set fails: malformed message
  closed -> Closed, set fails: connection closed
  due -> Closed, set fails: timed out
  early -> nothing
)"},
    {State::Busy, "an add is leaving", kNew, {"add"}, R"(
  set -> Busy, 39 unsent, due in 10000, sends set
  add -> Busy, 38 unsent, due in 10000, sends add
  wait; get -> Busy, 38 unsent, due in 10000, sends wait
  try_get -> Busy, 38 unsent, due in 10000, sends try_get
  queue_push -> Busy, 39 unsent, due in 10000, sends queue_push
  a byte has left -> Busy, 18 unsent, due in 10000
  all has left -> Busy, due in 10000
  a value -> Closed, 19 unsent, add is 1
  an integer -> Idle, 19 unsent, add is 7
  too much -> Idle, 19 unsent, add is 1001
  closed -> Closed, add fails: connection closed
  due -> Closed, add fails: timed out
  byte 0; byte 1; byte 7; bytes 0 1; half an integer; early -> nothing
)"},
    {State::Busy, "an add has left", kNew, {"add", "all has left"}, R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  a value -> Closed, add is 1
  an integer -> Idle, add is 7
  too much -> Idle, add is 1001
  closed -> Closed, add fails: connection closed
  due -> Closed, add fails: timed out
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; half an integer; early ->
      nothing
)"},
    {State::Busy,
     "an add is half answered",
     kNew,
     {"add", "all has left", "half an integer"},
     R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  a value -> Closed, add is 4294967303
  an integer -> Closed, add is 30064771079
  half an integer -> Idle, add is 30064771079
  too much -> Closed, add is 4299262263303
  closed -> Closed, add fails: connection closed
  due -> Closed, add fails: timed out
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; early -> nothing
)"},
    {State::Busy, "an add and a set behind it", kNew, {"add", "set", "all has left"}, R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  a value -> Closed, add is 1, set is 0
  an integer -> Idle, add is 7, set is 0
  too much -> Idle, add is 1001, set is 0
  closed -> Closed, add fails: connection closed, set fails: connection closed
  due -> Closed, add fails: timed out, set fails: connection closed
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; half an integer; early ->
      nothing
)"},
    {State::Busy, "a wait", kNew, {"wait", "all has left"}, R"(
  byte 0 -> Idle, wait is 0
  byte 1; byte 7; a value; an integer; half an integer; too much -> Closed, wait fails:
      malformed message
  bytes 0 1 -> Closed, wait is 0
  closed -> Closed, wait fails: connection closed
  due -> Busy, 1 unsent, due in 5000, sends cancel
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; early -> nothing
)"},
    {State::Busy, "a wait, and an add held up", kNew, {"wait", "add", "all has left"}, R"(
  byte 0; bytes 0 1 -> Busy, 19 unsent, due in 10000, sends add, wait is 0
  byte 1; byte 7; a value; an integer; half an integer; too much -> Closed, wait fails:
      malformed message, add fails: connection closed
  closed -> Closed, wait fails: connection closed, add fails: connection closed
  due -> Busy, 1 unsent, due in 5000, sends cancel, add fails: timed out
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; early -> nothing
)"},
    {State::Busy,
     "a wait's time is over",
     kNew,
     {"wait", "all has left", "due", "all has left"},
     R"(
  byte 1 -> Idle, wait fails: timed out
  byte 7; an integer; half an integer; too much -> Closed, wait fails: malformed message
  bytes 0 1 -> Idle, wait is 1
  a value; due -> Closed, wait fails: timed out
  closed -> Closed, wait fails: connection closed
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; byte 0; early ->
      nothing
)"},
    {State::Busy,
     "a wait's time is over, an add held up",
     kNew,
     {"wait", "all has left", "early", "add", "due"},
     R"(
  a byte has left; all has left -> Busy, due in 5000
  byte 1 -> Busy, 20 unsent, due in 5000, sends add, wait fails: timed out
  byte 7; an integer; half an integer; too much -> Closed, wait fails: malformed message, add
      fails: connection closed
  bytes 0 1 -> Busy, 20 unsent, due in 5000, sends add, wait is 1
  a value -> Idle, 20 unsent, sends add, wait fails: timed out, add is 8502796096475496448
  closed -> Closed, wait fails: connection closed, add fails: connection closed
  due -> Closed, wait fails: timed out, add fails: connection closed
  set; add; wait; get; try_get; queue_push; byte 0; early -> nothing
)"},
    {State::Busy,
     "a wait's time is over, and it is released",
     kNew,
     {"wait", "all has left", "due", "byte 0"},
     R"(
  a byte has left; all has left -> Busy, due in 5000
  byte 0; byte 7; bytes 0 1; an integer; half an integer; too much -> Closed, wait fails:
      malformed message
  byte 1 -> Idle, 1 unsent, wait is 1
  a value -> Closed, 1 unsent, wait is 1
  closed -> Closed, wait fails: connection closed
  due -> Closed, wait fails: timed out
  set; add; wait; get; try_get; queue_push; early -> nothing
)"},
    {State::Busy, "a get waits", kNew, {"get", "all has left"}, R"(
  byte 0; bytes 0 1 -> Busy, 11 unsent, due in 10000, sends get (then)
  byte 1; byte 7; a value; an integer; half an integer; too much -> Closed, get fails: malformed
      message
  closed -> Closed, get fails: connection closed
  due -> Busy, 1 unsent, due in 5000, sends cancel
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; early -> nothing
)"},
    {State::Busy,
     "a get's time is over",
     kNew,
     {"get", "all has left", "due", "all has left"},
     R"(
  byte 1 -> Idle, get fails: timed out
  byte 7; an integer; half an integer; too much -> Closed, get fails: malformed message
  bytes 0 1 -> Busy, 11 unsent, due in 5000, sends get (then)
  a value; due -> Closed, get fails: timed out
  closed -> Closed, get fails: connection closed
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; byte 0; early ->
      nothing
)"},
    {State::Busy,
     "a get's value is asked for",
     kNew,
     {"get", "all has left", "byte 0", "all has left"},
     R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  a value -> Idle, get is 'v'
  too much -> Closed, get fails: beyond a limit of the store
  closed -> Closed, get fails: connection closed
  due -> Busy, due in 5000
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; an integer; half an integer;
      early -> nothing
)"},
    {State::Busy,
     "a get's value is asked for, for long",
     kNew,
     {"get", "all has left", "byte 0", "all has left", "due"},
     R"(
  set -> Busy, 20 unsent, due in 5000, sends set
  add -> Busy, 19 unsent, due in 5000, sends add
  wait; get -> Busy, 19 unsent, due in 5000, sends wait
  try_get -> Busy, 19 unsent, due in 5000, sends try_get
  queue_push -> Busy, 20 unsent, due in 5000, sends queue_push
  a value -> Idle, get is 'v'
  too much -> Closed, get fails: beyond a limit of the store
  closed -> Closed, get fails: connection closed
  due -> Closed, get fails: timed out
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; an integer; half an integer;
      early -> nothing
)"},
    {State::Busy, "a try_get checks", kNew, {"try_get", "all has left"}, R"(
  byte 0; bytes 0 1 -> Busy, 11 unsent, due in 10000, sends get (then)
  byte 1 -> Idle, try_get is 1
  byte 7 -> Idle, try_get is 7
  a value -> Closed, try_get is 1
  an integer; half an integer -> Closed, try_get is 7
  too much -> Closed, try_get is 233
  closed -> Closed, try_get fails: connection closed
  due -> Closed, try_get fails: timed out
  set; add; wait; get; try_get; queue_push; a byte has left; all has left; early -> nothing
)"},
    {State::Busy,
     "a try_get's value is asked for",
     kNew,
     {"try_get", "all has left", "byte 0", "all has left"},
     R"(
  set -> Busy, 20 unsent, due in 10000, sends set
  add -> Busy, 19 unsent, due in 10000, sends add
  wait; get -> Busy, 19 unsent, due in 10000, sends wait
  try_get -> Busy, 19 unsent, due in 10000, sends try_get
  queue_push -> Busy, 20 unsent, due in 10000, sends queue_push
  a value -> Idle, try_get is 'v'
  too much -> Closed, try_get fails: beyond a limit of the store
  closed -> Closed, try_get fails: connection closed
  due -> Busy, due in 5000
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; an integer; half an integer;
      early -> nothing
)"},
    {State::Busy, "a wait, of an old version", kOld, {"wait", "all has left"}, R"(
  queue_push -> Busy, due in 10000, queue_push fails: not supported by the server
  byte 0 -> Idle, wait is 0
  byte 1; byte 7; a value; an integer; half an integer; too much -> Closed, wait fails:
      malformed message
  bytes 0 1 -> Closed, wait is 0
  closed -> Closed, wait fails: connection closed
  due -> Closed, wait fails: timed out
  set; add; wait; get; try_get; a byte has left; all has left; early -> nothing
)"},
    {State::Closed, "", kNew, {"closed"}, R"(
  set -> Closed, set fails: connection closed
  add -> Closed, add fails: connection closed
  wait -> Closed, wait fails: connection closed
  get -> Closed, get fails: connection closed
  try_get -> Closed, try_get fails: connection closed
  queue_push -> Closed, queue_push fails: connection closed
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; a value; an integer; half an
      integer; too much; closed; early; due -> nothing
)"},
    {State::Closed, "a reply made no sense", kNew, {"wait", "all has left", "byte 7"}, R"(
  set -> Closed, set fails: connection closed
  add -> Closed, add fails: connection closed
  wait -> Closed, wait fails: connection closed
  get -> Closed, get fails: connection closed
  try_get -> Closed, try_get fails: connection closed
  queue_push -> Closed, queue_push fails: connection closed
  a byte has left; all has left; byte 0; byte 1; byte 7; bytes 0 1; a value; an integer; half an
      integer; too much; closed; early; due -> nothing
)"},
};

TEST(ClientFsmTableTest, EveryEventInEveryState) {
  const auto events = all_events();
  for (const StateRow& row : kTable) {
    SCOPED_TRACE("row " + std::to_string(&row - kTable.data()) + ": " +
                 kStateNames[static_cast<int>(row.state)] + " " + row.what);
    Machine machine(row.version);
    test::go(machine, events, row.way);
    EXPECT_EQ(machine.state(), row.state);
    EXPECT_EQ(test::what_each_does<Machine>(
                  events, row.way, [&row] { return std::make_unique<Machine>(row.version); }),
              row.does);
  }
}

TEST(ClientFsmTableTest, HasEveryState) {
  for (std::size_t i = 0; i < std::size(kStateNames); ++i) {
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [i](const StateRow& row) {
      return static_cast<std::size_t>(row.state) == i;
    })) << kStateNames[i];
  }
}

}  // namespace
}  // namespace drun::store
