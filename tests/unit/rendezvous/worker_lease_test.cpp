#include "rendezvous/worker_lease.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kKeepAlive{6'000};
constexpr Time kStart{std::chrono::hours(1)};

class LeaseMachine {
 public:
  WorkerLease lease{kKeepAlive};
  Time now = kStart;

  void renew(bool holds_workers) {
    if (const auto from = lease.renew(holds_workers))
      did_ += ", renewed from " + std::to_string((*from - kStart) / std::chrono::milliseconds(1));
  }
  [[nodiscard]] std::string state() const {
    return lease.in_doubt() ? lease.over() ? "InDoubt and over" : "InDoubt"
           : lease.over()   ? "Over"
                            : "Known";
  }
  std::string news() {
    return news_(state() + (lease.may_start(now) ? ", may start" : ""), std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<LeaseMachine> kEvents = {
    {"alive, without workers", [](LeaseMachine& m) { m.lease.on_alive(m.now), m.renew(false); }},
    {"alive, with workers", [](LeaseMachine& m) { m.lease.on_alive(m.now), m.renew(true); }},
    {"an older answer",
     [](LeaseMachine& m) { m.lease.on_alive(m.now - kKeepAlive), m.renew(false); }},
    {"nothing new", [](LeaseMachine& m) { m.renew(false); }},
    {"new session", [](LeaseMachine& m) { m.lease.on_new_session(), m.renew(false); }},
    {"link back", [](LeaseMachine& m) { m.lease.doubt(); }},
    {"entry written", [](LeaseMachine& m) { m.lease.on_entry_written(); }},
    {"over", [](LeaseMachine& m) { m.lease.on_over(); }},
    {"new workers", [](LeaseMachine& m) { m.lease.on_new_workers(); }},
    {"workers gone", [](LeaseMachine& m) { m.lease.on_workers_gone(); }},
    {"almost a lease later", [](LeaseMachine& m) { m.now += kKeepAlive - Milliseconds(1); }},
    {"a lease later", [](LeaseMachine& m) { m.now += kKeepAlive; }}};

const std::vector<test::StateRow> kTable = {
    {"Known", {}, R"(
  alive, without workers; alive, with workers -> Known, may start, renewed from 0
  an older answer -> Known, renewed from -6000
  link back -> InDoubt
  over -> Over, may start
  nothing new; new session; entry written; new workers; workers gone; almost a lease later; a
      lease later -> nothing
)"},
    {"Known, renewed", {"alive, without workers"}, R"(
  link back -> InDoubt
  over -> Over, may start
  a lease later -> Known
  alive, without workers; alive, with workers; an older answer; nothing new; new session; entry
      written; new workers; workers gone; almost a lease later -> nothing
)"},
    {"Known, not renewed for too long", {"alive, without workers", "a lease later"}, R"(
  alive, without workers; alive, with workers -> Known, may start, renewed from 6000
  link back -> InDoubt
  over -> Over
  an older answer; nothing new; new session; entry written; new workers; workers gone; almost a
      lease later; a lease later -> nothing
)"},
    {"InDoubt", {"alive, with workers", "almost a lease later", "link back"}, R"(
  alive, without workers -> InDoubt, renewed from 5999
  entry written -> Known, may start
  over -> InDoubt and over
  alive, with workers; an older answer; nothing new; new session; link back; new workers;
      workers gone; almost a lease later; a lease later -> nothing
)"},
    {"Over", {"alive, with workers", "over"}, R"(
  link back -> InDoubt and over
  new workers; workers gone -> Known, may start
  a lease later -> Over
  alive, without workers; alive, with workers; an older answer; nothing new; new session; entry
      written; over; almost a lease later -> nothing
)"},
    {"InDoubt and over", {"alive, with workers", "link back", "over"}, R"(
  entry written -> Over, may start
  new workers; workers gone -> InDoubt
  alive, without workers; alive, with workers; an older answer; nothing new; new session; link
      back; over; almost a lease later; a lease later -> nothing
)"}};

TEST(WorkerLeaseTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Known", "InDoubt", "Over", "InDoubt and over"});
}

}  // namespace
}  // namespace drun::rendezvous
