#include "launcher/agent/agent_watch.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hang/heartbeat_file.hpp"
#include "jobs/job_view.hpp"
#include "jobs/usage.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/output/log_layout.hpp"
#include "rendezvous/keys.hpp"
#include "stacks/stack_report.hpp"
#include "status/agent_socket.hpp"
#include "support/agent_parts.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/stacks_parts.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using status::Question;
using test::place_of;

const std::string kHost = "node7";

// One worker, all that may be asked for, and a store of its own.
class Watched {
 public:
  Watched() {
    parts.on_joined = [this] {
      driver.join(parts.node);
      driver.perform_actions();
      watch.joined(parts.node);
    };
    parts.on_event = [this](const rendezvous::KeyValueEvent& event) {
      if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event);
          snapshot != nullptr && snapshot->watch == kOurs)
        seen.insert(seen.end(), snapshot->entries.begin(), snapshot->entries.end());
      if (watch.on_event(event)) {
        ++taken;
      } else if (takes_part) {
        driver.on_event(event, std::chrono::steady_clock::now());
        driver.perform_actions();
      }
    };
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    watch.cancel();
    stacks.cancel();
  }
  [[nodiscard]] bool join() {
    parts.backend.start();
    return parts.until([this] { return parts.joined; });
  }
  // Until the job has begun, and so its documents are written.
  [[nodiscard]] bool take_part() {
    takes_part = true;
    return join() && eventually([this] { return !parts.runner.requests.empty(); });
  }
  void run_worker(pid_t pid) {
    parts.workers.listen();
    parts.workers.start(place_of(0, 1));
    parts.workers.on_time();
    parts.runner.report(process::Spawned{parts.runner.requests.at(0).id, pid});
    parts.turn();
  }
  [[nodiscard]] bool eventually(const std::function<bool()>& condition) {
    return drun::test::eventually([&] {
      parts.turn();
      return condition();
    });
  }
  // What this host is told.
  [[nodiscard]] std::string answer_to(Question question) {
    const auto names = status::find_sockets(parts.options.run_id);
    if (names.size() != 1) return std::to_string(names.size()) + " sockets";
    auto asking = std::async(std::launch::async, [name = names.front(), question] {
      return status::ask(name, std::chrono::steady_clock::now() + drun::test::kPatience, question);
    });
    if (!eventually(
            [&] { return asking.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }))
      return "nothing";
    const auto answer = asking.get();
    return answer ? *answer : answer.error().what();
  }
  [[nodiscard]] std::size_t documents() {
    const auto found = jobs::decode_documents(answer_to(Question::Job));
    return found ? found->size() : 0;
  }
  // What the store has there.
  [[nodiscard]] std::vector<rendezvous::Change> stored(const std::string& prefix) {
    seen.clear();
    parts.backend.key_value().watch(kOurs, prefix, true);
    parts.turn();
    parts.backend.key_value().unwatch(kOurs);
    return seen;
  }

  static constexpr rendezvous::WatchId kOurs = 77;
  const drun::test::TemporaryDirectory folder;
  const rendezvous::Keys keys{"watched " + std::to_string(::getpid())};
  test::AgentParts parts{options()};
  drun::test::OutputRig screen;
  bool takes_part = false;  // else it only registers
  int taken = 0;
  int news = 0;
  std::vector<rendezvous::Change> seen;
  std::vector<bool> unwound;  // by each look for stacks
  ParticipantDriver driver{
      {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
      [](const rendezvous::Outcome&) {}};
  AgentStacks stacks{test::stacks_parts(
      parts, kHost, screen.start(),
      [this](const LookRequest& request) { unwound.push_back(request.unwind); })};
  GpuLedger gpus;
  AgentWatch watch{{parts.io, parts.options, kHost, parts.workers, parts.backend, driver,
                    parts.events, parts.status, stacks, gpus, [this] { ++news; }},
                   std::nullopt};

 private:
  [[nodiscard]] Options options() const {
    Options chosen = test::lone_job();
    chosen.run_id = "watched " + std::to_string(::getpid());
    chosen.heartbeats.next = std::chrono::seconds(1);  // so it looks ten times a second
    chosen.hang_timeout = std::chrono::seconds(60);
    chosen.preflight = Preflight::Warn;
    chosen.status_socket = folder.file("page");
    chosen.metrics_file = folder.file("metrics");
    chosen.summary = true;
    return chosen;
  }
};

TEST(AgentWatchTest, WhoeverAsksOnThisHostIsToldWhatIsKnown) {
  Watched rig;
  EXPECT_EQ(rig.answer_to(Question::Status), "0 sockets") << "it has not begun";
  rig.parts.worker_output.error_files = {{0, rig.folder.file("error.json")}};
  rig.watch.start();
  rig.run_worker(::getpid());
  const auto beat = heartbeat_file(rig.folder.file("error.json"));
  ASSERT_TRUE(hang::write_heartbeat(beat, "41"));
  std::optional<status::RankBeat> behind;
  ASSERT_TRUE(drun::test::eventually([&] {
    const auto own = status::parse_status(rig.answer_to(Question::Status));
    EXPECT_EQ(own.value().host, kHost);
    behind = own.value().behind;
    return behind.has_value();
  }));
  EXPECT_EQ(behind->step, 41);
  EXPECT_EQ(jobs::decode_usage(rig.answer_to(Question::Usage)).value().ranks.size(), 1U);
  EXPECT_TRUE(stacks::parse_report(rig.answer_to(Question::Stacks)));
  EXPECT_TRUE(stacks::parse_report(rig.answer_to(Question::QuickJobStacks)));
  EXPECT_THAT(rig.unwound, testing::ElementsAre(true, false));
}

TEST(AgentWatchTest, TheDocumentsOfTheJobAreThoseOfItsStore) {
  Watched rig;
  rig.watch.start();
  EXPECT_EQ(rig.documents(), 0U) << "there is no store yet";
  ASSERT_TRUE(rig.take_part());
  EXPECT_GT(rig.documents(), 0U);
  EXPECT_GT(rig.taken, 0) << "what the store says of them is nobody else's";
}

TEST(AgentWatchTest, AStoreThatItHasLeftIsAskedForNothing) {
  for (const bool dropped : {false, true}) {
    Watched rig;
    rig.watch.start();
    ASSERT_TRUE(rig.take_part());
    dropped ? rig.watch.dropped() : rig.watch.leaves_store();
    EXPECT_EQ(rig.documents(), 0U);
  }
}

TEST(AgentWatchTest, TheRankThatIsBehindIsInTheStore) {
  Watched rig;
  rig.parts.worker_output.error_files = {{0, rig.folder.file("error.json")}};
  rig.watch.start();
  ASSERT_TRUE(rig.join());
  rig.run_worker(::getpid());
  const auto beat = heartbeat_file(rig.folder.file("error.json"));
  ASSERT_TRUE(hang::write_heartbeat(beat, "41"));
  EXPECT_TRUE(rig.eventually(
      [&] { return rig.stored(rig.keys.beat_of(rig.parts.node.ticket)).size() == 1; }));
}

TEST(AgentWatchTest, WhatTheNodeIsLikeGoesToWhoLeads) {
  Watched rig;
  rig.parts.options.max_nodes = 2;
  rig.takes_part = true;
  ASSERT_TRUE(rig.join());
  ASSERT_TRUE(rig.eventually([&] { return rig.news == 1; }));
  EXPECT_TRUE(rig.eventually([&] {
    rig.driver.perform_actions();
    return rig.stored(rig.keys.facts).size() == 1;
  }));
}

// Its other nodes may ask for the stacks of these; a job of one node has no others.
TEST(AgentWatchTest, OfSeveralNodesEachAnswersTheOthersOnceItsWorkersRun) {
  for (const int nodes : {1, 2}) {
    Watched rig;
    rig.parts.options.max_nodes = nodes;
    ASSERT_TRUE(rig.join());
    rig.watch.on_workers({});
    rig.parts.turn();
    EXPECT_EQ(rig.taken, 0);
    GroupNews started;
    started.started = true;
    rig.watch.on_workers(started);
    rig.parts.turn();
    EXPECT_EQ(rig.taken, nodes - 1);
  }
}

TEST(AgentWatchTest, OnceCancelledItLetsTheLoopEnd) {
  Watched rig;
  rig.watch.start();
  rig.parts.options.max_nodes = 2;
  ASSERT_TRUE(rig.join());
  rig.parts.workers.close();
  rig.parts.backend.leave(false);
  rig.parts.backend.release();
  rig.parts.turn();
  EXPECT_FALSE(rig.parts.io.stopped());
  rig.watch.cancel();
  rig.stacks.cancel();
  rig.parts.turn();
  EXPECT_TRUE(rig.parts.io.stopped());
}

}  // namespace
}  // namespace drun::launcher
