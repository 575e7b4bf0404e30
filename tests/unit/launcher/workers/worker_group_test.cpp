#include "launcher/workers/worker_group.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/process/spawn.hpp"
#include "support/fake_workers.hpp"
#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using test::FakeFiles;
using test::FakeOutput;
using test::FakeRunner;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WorkerGroup::Time kStart{std::chrono::hours(1)};
constexpr process::WorkerId kFirst = 1;
constexpr process::WorkerId kSecond = 2;
constexpr process::WorkerId kStranger = 99;

Options two_workers() {
  Options options;
  options.nproc_per_node = 2;
  options.command = {"/bin/sh", "-c", "true"};
  options.shutdown_timeout = milliseconds(5);
  return options;
}

rendezvous::Assignment second_node() {
  rendezvous::Assignment assignment;
  assignment.round = 3;
  assignment.group_rank = 1;
  assignment.first_rank = 2;
  assignment.world_size = 4;
  assignment.restart_count = 1;
  return assignment;
}

process::GuardianEvent spawned(process::WorkerId id) {
  return process::Spawned{id, static_cast<pid_t>(100 + id)};
}
process::GuardianEvent exited(process::WorkerId id, int code, int signal = 0) {
  return process::Exited{id, static_cast<pid_t>(100 + id), {code, signal, false}, false};
}

std::vector<std::string> texts(const std::vector<RankState>& states) {
  std::vector<std::string> result;
  for (const auto& state : states)
    result.push_back(state.text);
  return result;
}

// A group of two workers on faked processes.
struct Rig {
  explicit Rig(Options chosen = two_workers(), const RoundServices& services = {})
      : options(std::move(chosen)), group(options, "node1", runner, output, files, services) {}

  // One batch of the guardian's: the events, then what the agent does after each batch.
  GroupNews feed(const std::vector<process::GuardianEvent>& events) {
    GroupNews news;
    for (const auto& event : events)
      merge(news, group.on_event(event, now));
    merge(news, group.on_time(now));
    return news;
  }
  GroupNews at(milliseconds later) {
    now = kStart + later;
    return group.on_time(now);
  }
  static void merge(GroupNews& into, GroupNews more) {
    into.started = into.started || more.started;
    into.succeeded = into.succeeded || more.succeeded;
    into.stopped = into.stopped || more.stopped;
    into.failing = into.failing || more.failing;
    if (more.failure) into.failure = std::move(more.failure);
  }
  void run() {
    group.start(second_node(), now);
    (void)feed({spawned(kFirst), spawned(kSecond)});
    (void)runner.take_calls();
  }

  Options options;
  FakeRunner runner;
  FakeOutput output;
  FakeFiles files;
  WorkerGroup group;
  WorkerGroup::Time now = kStart;
};

// What was heard of the group, and what it asked of the guardian: "failed rank 2, stop SIGTERM 5".
std::string told(const GroupNews& news, Rig& rig) {
  std::vector<std::string> parts;
  if (news.started) parts.emplace_back("started");
  if (news.succeeded) parts.emplace_back("succeeded");
  if (news.failing) parts.emplace_back("failing");
  if (news.failure) {
    std::string ranks = std::to_string(news.failure->rank);
    for (const auto& other : news.failure->others)
      ranks += "+" + std::to_string(other.ranks.front().first);
    parts.push_back("failed " + ranks);
  }
  if (news.stopped) parts.emplace_back("stopped");
  if (auto calls = rig.runner.take_calls(); !calls.empty()) parts.push_back(std::move(calls));
  std::string text;
  for (const auto& part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

// ---- every state, every event ----

class FakeBeforeStop final : public BeforeStop {
 public:
  std::optional<Time> begin(bool hangs, Time now, std::function<void()> call) override {
    ++begun;
    begun_for_hang = hangs;
    over = std::move(call);
    if (!wanted) return std::nullopt;
    return now + milliseconds(5'000);
  }
  bool wanted = true;
  int begun = 0;
  bool begun_for_hang = false;
  std::function<void()> over;
};

class FakeDirectory final : public PeerDirectory {
 public:
  void ask(const rendezvous::Assignment& assignment, int workers, Done done) override {
    calls += "ask " + std::to_string(assignment.round) + " " + std::to_string(workers) + ",";
    answer = std::move(done);
  }
  void let_go() override { calls += "let go,"; }

  std::string calls;
  Done answer;
};

class FakeBeforeStart final : public BeforeStart {
 public:
  std::optional<Time> begin(Time now, std::function<void()> call) override {
    over = std::move(call);
    if (!wanted) return std::nullopt;
    return now + milliseconds(1'000);
  }
  bool wanted = true;
  std::function<void()> over;
};

// What a group may have to wait for; none of it is there but in the states that name it.
struct FakeServices {
  FakeServices() { before_stop.wanted = before_start.wanted = false; }
  FakeBeforeStop before_stop;
  FakeBeforeStart before_start;
  FakeDirectory peers;
};

struct FullRig : FakeServices, Rig {
  explicit FullRig(bool asks_peers)
      : Rig(two_workers(),
            {nullptr, asks_peers ? &peers : nullptr, nullptr, &before_stop, &before_start}) {}
};

struct NamedState {
  const char* name;
  std::function<void(FullRig&)> reach;
  bool asks_peers = false;
};
struct NamedEvent {
  const char* name;
  std::function<GroupNews(FullRig&)> happen;
};

std::vector<NamedState> states() {
  return {
      {"never started", [](FullRig&) {}},
      {"preparing",
       [](FullRig& rig) {
         rig.files.hangs = true;
         rig.group.start(second_node(), rig.now);
       }},
      {"peers are asked", [](FullRig& rig) { rig.group.start(second_node(), rig.now); }, true},
      {"peers are known",
       [](FullRig& rig) {
         rig.files.hangs = true;
         rig.group.start(second_node(), rig.now);
         rig.peers.answer(PeerDirectory::Places{"a:1", "a:2", "b:3", "b:4"});
       },
       true},
      {"refused",
       [](FullRig& rig) {
         rig.output.pipe_error = EMFILE;
         rig.group.start(second_node(), rig.now);
       }},
      {"the start is held",
       [](FullRig& rig) {
         rig.before_start.wanted = true;
         rig.group.start(second_node(), rig.now);
       }},
      {"requested", [](FullRig& rig) { rig.group.start(second_node(), rig.now); }},
      {"running", [](FullRig& rig) { rig.run(); }},
      {"half done",
       [](FullRig& rig) {
         rig.run();
         (void)rig.feed({exited(kFirst, 0)});
       }},
      {"failed",
       [](FullRig& rig) {
         rig.run();
         (void)rig.feed({exited(kFirst, 7)});
       }},
      {"reported",
       [](FullRig& rig) {
         rig.run();
         (void)rig.feed({exited(kFirst, 7)});
         (void)rig.at(RoundFailures::kSettle);
       }},
      {"failed, the stop is held",
       [](FullRig& rig) {
         rig.before_stop.wanted = true;
         rig.run();
         (void)rig.feed({exited(kFirst, 7)});
       }},
      {"timed out",
       [](FullRig& rig) {
         rig.run();
         rig.output.tails[kFirst] = {"TimeoutError: timed out"};
         (void)rig.feed({exited(kFirst, 7)});
       }},
      {"stopping, the report is still read",
       [](FullRig& rig) {
         rig.output.error_files = {{0, "/nowhere/error.json"}};
         rig.run();
         rig.files.hangs = true;
         (void)rig.feed({exited(kFirst, 7)});
         (void)rig.at(RoundFailures::kSettle);
       }},
      {"all are gone, the report is still read",
       [](FullRig& rig) {
         rig.output.error_files = {{0, "/nowhere/error.json"}};
         rig.run();
         rig.files.hangs = true;
         (void)rig.feed({exited(kFirst, 7)});
         (void)rig.feed({exited(kSecond, 0, SIGTERM), process::Stopped{}});
       }},
      {"stopping",
       [](FullRig& rig) {
         rig.run();
         (void)rig.group.stop(false, rig.now);
       }},
      {"killing",
       [](FullRig& rig) {
         rig.run();
         (void)rig.group.stop(true, rig.now);
       }},
      {"over",
       [](FullRig& rig) {
         rig.run();
         (void)rig.group.stop(false, rig.now);
         (void)rig.feed({process::Stopped{}});
       }},
  };
}

std::vector<NamedEvent> events() {
  const auto feed = [](process::GuardianEvent event) {
    return [event](FullRig& rig) { return rig.feed({event}); };
  };
  return {
      {"spawned", feed(spawned(kSecond))},
      {"spawn failed", feed(process::SpawnFailed{kSecond, ENOENT, "exec ./gone"})},
      {"exit 0", feed(exited(kSecond, 0))},
      {"exit 7", feed(exited(kSecond, 7))},
      {"exit 1", feed(exited(kSecond, 1))},
      {"SIGSEGV", feed(exited(kSecond, 0, SIGSEGV))},
      {"SIGTERM", feed(exited(kSecond, 0, SIGTERM))},
      {"a stranger's exit", feed(exited(kStranger, 7))},
      {"stopped", feed(process::Stopped{})},
      {"lease over", feed(process::LeaseOver{})},
      {"guardian lost", feed(process::GuardianLost{})},
      {"files made",
       [](FullRig& rig) {
         rig.files.answer();
         return rig.at(milliseconds(1));
       }},
      {"peers known",
       [](FullRig& rig) {
         if (rig.peers.answer) rig.peers.answer(PeerDirectory::Places{"a:1", "a:2", "b:3", "b:4"});
         return rig.group.on_time(rig.now);
       }},
      {"may start",
       [](FullRig& rig) {
         if (rig.before_start.over) rig.before_start.over();
         return rig.group.on_time(rig.now);
       }},
      {"may stop",
       [](FullRig& rig) {
         if (rig.before_stop.over) rig.before_stop.over();
         return rig.group.on_time(rig.now);
       }},
      {"fault",
       [](FullRig& rig) {
         rig.group.on_fault(1, {7, "aborted the job with code 7"});
         return rig.group.on_time(rig.now);
       }},
      {"stop()", [](FullRig& rig) { return rig.group.stop(false, rig.now); }},
      {"stop(immediately)", [](FullRig& rig) { return rig.group.stop(true, rig.now); }},
      {"abandon()", [](FullRig& rig) { return rig.group.abandon(rig.now); }},
      {"time", [](FullRig& rig) { return rig.at(std::chrono::seconds(1)); }},
      {"much later", [](FullRig& rig) { return rig.at(std::chrono::seconds(9)); }},
  };
}

std::string state_of(const WorkerGroup& group) {
  if (group.idle()) return "idle";
  return group.stopping() ? "stopping" : "running";
}

// What each pair leads to; a pair that is not here changes nothing and is heard of by nobody.
using Reactions = std::map<std::string, std::string>;

const std::map<std::string, Reactions>& reactions() {
  static const Reactions asked_to_stop = {
      {"stop()", "stop SIGTERM 5 -> stopping"},
      {"stop(immediately)", "stop SIGKILL 0 -> stopping"},
      {"abandon()", "-> idle"},
  };
  static const auto with = [](Reactions more, const Reactions& base) {
    more.insert(base.begin(), base.end());
    return more;
  };
  static const Reactions being_stopped = {
      {"stopped", "stopped -> idle"},
      {"stop(immediately)", "stop SIGKILL 0"},  // also of one that is being killed: no harm
      {"abandon()", "stopped -> idle"},
  };
  static const Reactions idle = {{"stop()", "stopped"}, {"stop(immediately)", "stopped"}};
  // A failure stops the others at once; it is reported when they are gone, or have had their time.
  static const Reactions any_failure = {
      {"spawn failed", "stop SIGTERM 5 -> stopping"}, {"exit 7", "stop SIGTERM 5 -> stopping"},
      {"exit 1", "stop SIGTERM 5 -> stopping"},       {"SIGSEGV", "stop SIGTERM 5 -> stopping"},
      {"SIGTERM", "stop SIGTERM 5 -> stopping"},
  };
  static const Reactions no_worker_yet = {
      {"stop()", "stopped -> idle"},
      {"stop(immediately)", "stopped -> idle"},
      {"abandon()", "-> idle"},
  };
  // Whatever happens next; no worker that is heard of was started.
  static const Reactions told_soon = [] {
    Reactions result;
    for (const auto& event : events())
      result.emplace(event.name, "failed 2, stop SIGTERM 5 -> stopping");
    for (const auto* name : {"spawn failed", "exit 7", "exit 1", "SIGSEGV", "SIGTERM"})
      result.at(name) = "failed 3, stop SIGTERM 5 -> stopping";
    for (const auto* name : {"stop()", "stop(immediately)", "abandon()"})
      result.erase(name);
    return result;
  }();
  // The other one runs on for a while, and fails by itself meanwhile, or is the last one to end.
  static const Reactions stopped_later = with(
      {
          {"spawn failed", "failed 2+3, stop SIGTERM 5 -> stopping"},
          {"exit 0", "failed 2, stop SIGTERM 5 -> stopping"},
          {"exit 7", "failed 2+3, stop SIGTERM 5 -> stopping"},
          {"exit 1", "failed 2+3, stop SIGTERM 5 -> stopping"},
          {"SIGSEGV", "failed 2+3, stop SIGTERM 5 -> stopping"},
          {"SIGTERM", "failed 2+3, stop SIGTERM 5 -> stopping"},
          {"abandon()", "failed 2 -> idle"},
          {"much later", "failed 2, stop SIGTERM 5 -> stopping"},
      },
      asked_to_stop);
  static const std::map<std::string, Reactions> all = {
      {"never started", idle},
      {"preparing", with({{"files made", "spawn 1, spawn 2"}}, no_worker_yet)},
      {"peers are asked", with({{"peers known", "spawn 1, spawn 2"}}, no_worker_yet)},
      {"peers are known", with({{"files made", "spawn 1, spawn 2"}}, no_worker_yet)},
      {"refused", with(told_soon, asked_to_stop)},
      {"the start is held", with(
                                {
                                    {"may start", "spawn 1, spawn 2"},
                                    {"time", "spawn 1, spawn 2"},
                                    {"much later", "spawn 1, spawn 2"},
                                },
                                no_worker_yet)},
      {"requested", with(any_failure, asked_to_stop)},
      // The worker runs on, and is stopped with the other.
      {"running",
       with(with({{"fault", "stop SIGTERM 5 -> stopping"}}, any_failure), asked_to_stop)},
      {"half done", with(
                        {
                            {"exit 0", "succeeded"},
                            {"spawn failed", "failed 3, stop SIGTERM 5 -> stopping"},
                            {"exit 7", "failed 3, stop SIGTERM 5 -> stopping"},
                            {"exit 1", "failed 3, stop SIGTERM 5 -> stopping"},
                            {"SIGSEGV", "failed 3, stop SIGTERM 5 -> stopping"},
                            {"SIGTERM", "failed 3, stop SIGTERM 5 -> stopping"},
                            {"fault", "stop SIGTERM 5 -> stopping"},
                        },
                        asked_to_stop)},
      {"failed", with(
                     {
                         {"spawn failed", "failed 2"},
                         {"exit 0", "failed 2"},
                         {"exit 7", "failed 2+3"},  // as the first one: the same error
                         {"exit 1", "failed 2"},    // its answer to the stop, perhaps
                         {"SIGSEGV", "failed 2+3"},
                         {"SIGTERM", "failed 2"},
                         {"stopped", "failed 2, stopped -> idle"},
                         {"time", "failed 2"},
                         {"much later", "failed 2"},
                         {"abandon()", "failed 2, stopped -> idle"},
                     },
                     being_stopped)},
      {"reported", being_stopped},
      {"failed, the stop is held", with(
                                       {
                                           {"may stop", "stop SIGTERM 5 -> stopping"},
                                           {"time", "failed 2"},
                                       },
                                       stopped_later)},
      {"timed out", with({{"time", "stop SIGTERM 5 -> stopping"}}, stopped_later)},
      {"stopping, the report is still read",
       {
           {"files made", "failed 2"},
           {"stop(immediately)", "stop SIGKILL 0"},
           {"abandon()", "failed 2, stopped -> idle"},
       }},
      // Who is in a hurry hears of the failure without it.
      {"all are gone, the report is still read",
       {
           {"files made", "failed 2, stopped -> idle"},
           {"stop(immediately)", "failed 2, stopped -> idle"},
           {"abandon()", "failed 2, stopped -> idle"},
       }},
      {"stopping", being_stopped},
      {"killing", being_stopped},
      {"over", idle},
  };
  return all;
}

TEST(WorkerGroupTest, EveryEventInEveryState) {
  for (const auto& state : states()) {
    for (const auto& event : events()) {
      FullRig rig(state.asks_peers);
      state.reach(rig);
      (void)rig.runner.take_calls();
      const std::string before = state_of(rig.group);
      std::string happened = told(event.happen(rig), rig);
      if (const auto after = state_of(rig.group); after != before)
        happened += (happened.empty() ? "-> " : " -> ") + after;
      const Reactions& expected = reactions().at(state.name);
      const auto found = expected.find(event.name);
      EXPECT_EQ(happened, found == expected.end() ? "" : found->second)
          << state.name << ": " << event.name;
    }
  }
}

// However a round ended, the next one begins as the first.
TEST(WorkerGroupTest, TheNextRoundHasNothingOfTheLast) {
  for (const auto& state : states()) {
    SCOPED_TRACE(state.name);
    FullRig rig(state.asks_peers);
    state.reach(rig);
    (void)rig.group.abandon(rig.now);
    EXPECT_FALSE(rig.group.next_deadline());
    rig.before_start.wanted = rig.before_stop.wanted = false;
    rig.output.tails.clear();
    rig.output.error_files.clear();
    rig.output.pipe_error = 0;
    rig.files.answer();
    (void)rig.group.on_time(rig.now);
    (void)rig.runner.take_calls();
    rig.runner.requests.clear();
    rig.group.start(second_node(), rig.now);
    if (state.asks_peers) {
      EXPECT_EQ(told(rig.group.on_time(rig.now), rig), "") << "its peers are others";
      rig.peers.answer(PeerDirectory::Places{"a:1", "a:2", "b:3", "b:4"});
    }
    (void)rig.group.on_time(rig.now);
    (void)rig.runner.take_calls();
    ASSERT_EQ(rig.runner.requests.size(), 2U);
    const process::WorkerId first = rig.runner.requests[0].id;
    const process::WorkerId second = rig.runner.requests[1].id;
    EXPECT_EQ(told(rig.feed({spawned(first), spawned(second)}), rig), "started");
    EXPECT_EQ(told(rig.feed({exited(first, 0)}), rig), "");
    rig.group.on_fault(1, {7, "aborted the job with code 7"});
    EXPECT_EQ(told(rig.group.on_time(rig.now), rig), "stop SIGTERM 5");
    EXPECT_EQ(told(rig.feed({exited(second, 0, SIGTERM)}), rig), "failed 3");
    EXPECT_EQ(told(rig.feed({process::Stopped{}}), rig), "stopped");
    EXPECT_EQ(rig.group.stopped_ranks().succeeded, std::vector<int>{2});
    EXPECT_EQ(rig.group.stopped_ranks().others_killed, 0U);
    EXPECT_FALSE(rig.group.next_deadline());
  }
}

// ---- starting ----

TEST(WorkerGroupTest, EachWorkerIsAskedForWithItsOwnLabelAndEnvironment) {
  Rig rig;
  rig.output.folder = "/tmp/private";
  rig.output.error_files = {{0, "/tmp/private/0"}, {1, "/tmp/private/1"}};
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "remove /tmp/private, spawn 1, spawn 2");
  EXPECT_THAT(rig.runner.shared, Contains("WORLD_SIZE=4"));
  ASSERT_EQ(rig.output.labels.size(), 2U);
  const StreamLabel& label = rig.output.labels[1];
  EXPECT_EQ(label.worker, kSecond);
  EXPECT_EQ(label.rank, 3);
  EXPECT_EQ(label.local_rank, 1);
  EXPECT_EQ(label.round, 3);
  EXPECT_EQ(label.restart_count, 1);
  EXPECT_THAT(rig.runner.requests[1].environment,
              ::testing::IsSupersetOf({"RANK=3", "TORCHELASTIC_ERROR_FILE=/tmp/private/1"}));
  EXPECT_THAT(rig.runner.requests[1].argv, ElementsAre("/bin/sh", "-c", "true"));
}

TEST(WorkerGroupTest, TheyHaveStartedWhenTheLastOneRuns) {
  Rig rig;
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(told(rig.feed({spawned(kSecond)}), rig), "spawn 1, spawn 2");
  EXPECT_EQ(told(rig.feed({spawned(kFirst)}), rig), "started");
  EXPECT_EQ(rig.group.round(), 3);
}

TEST(WorkerGroupTest, WorkersThatStartWhileTheyAreBeingStoppedAreNotHeardOf) {
  Rig rig;
  rig.group.start(second_node(), rig.now);
  (void)rig.group.stop(false, rig.now);
  (void)rig.runner.take_calls();
  EXPECT_EQ(told(rig.feed({spawned(kFirst), spawned(kSecond)}), rig), "");
}

// The leader waits for its report before it believes one that came after it.
TEST(WorkerGroupTest, TheOtherNodesAreToldAtOnceThatOneHasFailed) {
  Rig rig;
  auto place = second_node();
  place.group_world_size = 2;
  rig.group.start(place, rig.now);
  (void)rig.feed({spawned(kFirst), spawned(kSecond)});
  (void)rig.runner.take_calls();
  const GroupNews first = rig.feed({exited(kFirst, 7)});
  EXPECT_TRUE(first.failing);
  EXPECT_FALSE(first.failure);
  const GroupNews then = rig.at(RoundFailures::kSettle);
  EXPECT_FALSE(then.failing);
  EXPECT_TRUE(then.failure);
}

TEST(WorkerGroupTest, AJobOfOneNodeHasNobodyToTell) {
  Rig rig;
  auto place = second_node();
  place.group_world_size = 1;
  rig.group.start(place, rig.now);
  (void)rig.feed({spawned(kFirst), spawned(kSecond)});
  EXPECT_FALSE(rig.feed({exited(kFirst, 7)}).failing);
}

TEST(WorkerGroupTest, TheNextRoundsWorkersAreNewOnes) {
  Rig rig;
  rig.run();
  (void)rig.group.stop(false, rig.now);
  (void)rig.feed({process::Stopped{}});
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "stop SIGTERM 5, spawn 3, spawn 4");
  EXPECT_EQ(told(rig.feed({exited(kFirst, 7)}), rig), "");  // of the round before
  EXPECT_EQ(told(rig.feed({spawned(3), spawned(4)}), rig), "started");
}

TEST(WorkerGroupTest, AProgramThatIsNotThereIsSaidOnceAndNothingIsStarted) {
  Options options = two_workers();
  options.command = {"/nowhere/program"};
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "");
  EXPECT_EQ(rig.group.next_deadline(), WorkerGroup::Time{});  // at once
  const GroupNews news = rig.at(milliseconds(0));
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->exit_code, 127);
  EXPECT_EQ(news.failure->cause, "exec /nowhere/program: No such file or directory");
  EXPECT_FALSE(news.failure->restartable);
  EXPECT_THAT(news.failure->others, IsEmpty());
  EXPECT_EQ(rig.runner.take_calls(), "stop SIGTERM 5");  // for `stopped`
}

TEST(WorkerGroupTest, AScriptThatOneWorkerLacksIsThatWorkersFailure) {
  drun::test::FileTree scripts;
  scripts.write("/0.py", "");
  Options options = two_workers();
  options.command = {"/bin/sh", scripts.root() + "/${local_rank}.py"};
  options.script_at = 1;
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "spawn 1");
  EXPECT_EQ(told(rig.feed({spawned(kFirst)}), rig), "stop SIGTERM 5");
  const GroupNews news = rig.feed({exited(kFirst, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 3);
  EXPECT_THAT(news.failure->cause, HasSubstr("1.py: No such file"));
}

TEST(WorkerGroupTest, OutputThatCannotBeOpenedIsAFailureThatNoRestartMends) {
  Rig rig;
  rig.output.open_error = EACCES;  // for both workers: told once
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "");
  const GroupNews news = rig.feed({});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->cause, "create folder /logs: Permission denied");
  EXPECT_EQ(news.failure->exit_code, 125);
  EXPECT_TRUE(news.failure->others.empty());
  EXPECT_FALSE(news.failure->restartable);
}

TEST(WorkerGroupTest, AProcessThatCannotBeMadeIsDrunsFailureAndNotThePrograms) {
  Rig rig;
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(kFirst), process::SpawnFailed{kSecond, EAGAIN, process::kFork}});
  const GroupNews news = rig.feed({exited(kFirst, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->exit_code, 125);
  EXPECT_EQ(news.failure->cause,
            "fork: Resource temporarily unavailable; a limit on processes is reached: ulimit -u, "
            "or pids.max of a cgroup");
  EXPECT_TRUE(news.failure->restartable);
}

TEST(WorkerGroupTest, APipeThatCannotBeMadeIsToldOnce) {
  Rig rig;
  rig.output.pipe_error = EMFILE;
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "");
  const GroupNews news = rig.feed({});
  ASSERT_TRUE(news.failure);
  EXPECT_THAT(news.failure->cause, HasSubstr("make a pipe: Too many open files"));
  EXPECT_TRUE(news.failure->others.empty());
}

TEST(WorkerGroupTest, WorkersAreStartedWhenTheirFilesAreMade) {
  Rig rig;
  rig.files.hangs = true;
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(told(rig.at(milliseconds(0)), rig), "");
  EXPECT_FALSE(rig.group.idle());
  rig.files.answer();
  EXPECT_EQ(rig.group.next_deadline(), WorkerGroup::Time{});
  EXPECT_EQ(told(rig.at(milliseconds(1)), rig), "spawn 1, spawn 2");
}

TEST(WorkerGroupTest, AFileSystemThatHangsIsAFailureThatNoRestartMends) {
  Rig rig;
  rig.files.hangs = true;
  rig.group.start(second_node(), rig.now);
  rig.files.give_up();
  const GroupNews news = rig.feed({});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->cause, "open /nfs/x: no answer for 30 s");
  EXPECT_EQ(news.failure->exit_code, 126);  // it was not the output
  EXPECT_TRUE(news.failure->others.empty());
  EXPECT_FALSE(news.failure->restartable);
  EXPECT_EQ(rig.runner.take_calls(), "stop SIGTERM 5");
}

// The answer to an earlier round's question comes when the next round has asked its own.
TEST(WorkerGroupTest, WhatWasMadeForARoundThatWasStoppedStartsNothing) {
  Rig rig;
  rig.files.hangs = true;
  rig.group.start(second_node(), rig.now);
  EXPECT_EQ(told(rig.group.stop(false, rig.now), rig), "stopped");
  rig.group.start(second_node(), rig.now);
  rig.files.answer();
  EXPECT_EQ(told(rig.at(milliseconds(1)), rig), "spawn 3, spawn 4");
}

// ---- failing ----

TEST(WorkerGroupTest, RanksThatFailInOneBatchFailedByThemselves) {
  Rig rig;
  rig.run();
  const GroupNews news = rig.feed({exited(kSecond, 3), exited(kFirst, 9)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 3);  // the first
  EXPECT_EQ(news.failure->exit_code, 3);
  EXPECT_EQ(news.failure->highest_code, 9);
  EXPECT_EQ(news.failure->lowest_rank, 2);
  EXPECT_EQ(news.failure->lowest_code, 9);
  ASSERT_EQ(news.failure->others.size(), 1U);
  EXPECT_EQ(news.failure->others.front().cause, "exit code 9");
}

TEST(WorkerGroupTest, TheFailureIsDueWhenTheOthersHaveHadTheirTime) {
  Rig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 7)});
  EXPECT_EQ(rig.group.next_deadline(), kStart + RoundFailures::kSettle);
  EXPECT_FALSE(rig.at(RoundFailures::kSettle - milliseconds(1)).failure);
  EXPECT_TRUE(rig.at(RoundFailures::kSettle).failure);
  EXPECT_FALSE(rig.group.next_deadline());
}

TEST(WorkerGroupTest, TheFailureHasWhatTheWorkerLeftBehind) {
  drun::test::FileTree files;
  files.write("/error.json", R"({"message": "ValueError: 42", "timestamp": "1"})");
  const std::string error_file = files.root() + "/error.json";
  Rig rig;
  rig.output.error_files = {{0, error_file}};
  rig.output.tails = {{kFirst, {"one", "two"}}};
  rig.run();
  rig.now = kStart + std::chrono::seconds(2);
  (void)rig.feed({exited(kFirst, 7)});
  const GroupNews news = rig.feed({exited(kSecond, 0)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 2);
  EXPECT_EQ(news.failure->local_rank, 0);
  EXPECT_EQ(news.failure->group_rank, 1);
  EXPECT_EQ(news.failure->host, "node1");
  EXPECT_EQ(news.failure->pid, 101);
  EXPECT_EQ(news.failure->cause, "exit code 7");
  EXPECT_EQ(news.failure->uptime_ms, 2000);
  EXPECT_THAT(news.failure->traceback, HasSubstr("ValueError: 42"));
  EXPECT_THAT(news.failure->tail, ElementsAre("one", "two"));
  EXPECT_EQ(news.failure->log_file, "/logs/1");
  EXPECT_TRUE(news.failure->restartable);
  EXPECT_EQ(rig.group.error_file(*news.failure), error_file);
}

// Its error file is on a file system that gives no answer, for a while or for ever.
TEST(WorkerGroupTest, NobodyHearsThatAllHaveStoppedBeforeTheFailure) {
  for (const bool answers : {true, false}) {
    drun::test::FileTree files;
    files.write("/error.json", R"({"message": "ValueError: 42", "timestamp": "1"})");
    Rig rig;
    rig.output.error_files = {{0, files.root() + "/error.json"}};
    rig.run();
    rig.files.hangs = true;
    (void)rig.feed({exited(kFirst, 7)});
    EXPECT_EQ(told(rig.at(RoundFailures::kSettle), rig), "stop SIGTERM 5");
    EXPECT_FALSE(rig.group.next_deadline());
    EXPECT_EQ(told(rig.feed({exited(kSecond, 0, SIGTERM), process::Stopped{}}), rig), "");
    EXPECT_TRUE(rig.group.stopping());
    EXPECT_EQ(told(rig.group.stop(false, rig.now), rig), "") << "all are gone";
    EXPECT_FALSE(rig.group.has_workers());
    if (answers)
      rig.files.answer();
    else
      rig.files.give_up();
    EXPECT_EQ(rig.group.next_deadline(), WorkerGroup::Time{});
    const GroupNews news = rig.at(RoundFailures::kSettle + milliseconds(1));
    ASSERT_TRUE(news.failure);
    EXPECT_EQ(news.failure->traceback.empty(), !answers);
    EXPECT_EQ(told(news, rig), "failed 2, stopped");
    EXPECT_TRUE(rig.group.idle());
  }
}

TEST(WorkerGroupTest, WhoIsInAHurryDoesNotWaitForWhatWasLeftBehind) {
  Rig rig;
  rig.output.error_files = {{0, "/nfs/error.json"}};
  rig.run();
  rig.files.hangs = true;
  (void)rig.feed({exited(kFirst, 7)});
  (void)rig.feed({exited(kSecond, 0), process::Stopped{}});
  (void)rig.runner.take_calls();
  EXPECT_EQ(told(rig.group.stop(true, rig.now), rig), "failed 2, stopped");
  rig.files.give_up();
  EXPECT_EQ(told(rig.at(milliseconds(1)), rig), "");
}

TEST(WorkerGroupTest, ALostRoundsFailureIsToldWithoutWhatIsStillRead) {
  Rig rig;
  rig.output.error_files = {{0, "/nfs/error.json"}};
  rig.run();
  rig.files.hangs = true;
  (void)rig.feed({exited(kFirst, 7)});
  (void)rig.at(RoundFailures::kSettle);
  EXPECT_EQ(told(rig.group.abandon(rig.now), rig), "failed 2, stopped, stop SIGTERM 5");
  rig.files.hangs = false;
  rig.group.start(second_node(), rig.now);
  rig.files.answer();
  EXPECT_EQ(told(rig.at(RoundFailures::kSettle + milliseconds(1)), rig), "spawn 3, spawn 4");
}

TEST(WorkerGroupTest, TheErrorFileOfAnothersFailureIsNotKnown) {
  Rig rig;
  rig.output.error_files = {{0, "/e/0"}, {1, "/e/1"}};
  rig.run();
  rendezvous::FailureSummary failure;
  failure.group_rank = 1;
  failure.local_rank = 1;
  failure.pid = 102;
  EXPECT_EQ(rig.group.error_file(failure), "/e/1");
  failure.group_rank = 0;  // another node's
  EXPECT_EQ(rig.group.error_file(failure), "");
  failure.group_rank = 1;
  failure.pid = 55;  // of an earlier round
  EXPECT_EQ(rig.group.error_file(failure), "");
}

// ---- stopping ----

TEST(WorkerGroupTest, AStopSendsTheSignalThatDrunWasSentUnlessTheUserChoseOne) {
  Rig rig;
  rig.run();
  rig.group.stop_with(SIGHUP);
  (void)rig.group.stop(false, rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "stop SIGHUP 5");

  Options options = two_workers();
  options.stop_signal = SIGUSR1;
  Rig chosen(options);
  chosen.run();
  chosen.group.stop_with(SIGHUP);
  (void)chosen.group.stop(false, chosen.now);
  EXPECT_EQ(chosen.runner.take_calls(), "stop SIGUSR1 5");
}

// A shell's background jobs ignore SIGINT and SIGQUIT.
TEST(WorkerGroupTest, WhatOutlivesWorkersThatWereInterruptedIsAskedAgain) {
  for (const int signal : {SIGINT, SIGQUIT}) {
    Rig rig;
    rig.run();
    rig.group.stop_with(signal);
    (void)rig.group.stop(false, rig.now);
    (void)rig.feed({exited(kFirst, 0, signal)});
    (void)rig.runner.take_calls();
    EXPECT_EQ(told(rig.feed({exited(kSecond, 0, signal)}), rig), "stop SIGTERM 5");
  }
  Options options = two_workers();
  options.stop_signal = SIGINT;  // the user knows what is below the workers
  Rig chosen(options);
  chosen.run();
  (void)chosen.group.stop(false, chosen.now);
  (void)chosen.runner.take_calls();
  EXPECT_EQ(told(chosen.feed({exited(kFirst, 0, SIGINT), exited(kSecond, 0, SIGINT)}), chosen), "");
}

TEST(WorkerGroupTest, WhatTheWorkersWroteIsReadBeforeTheyCountAsStopped) {
  Rig rig;
  rig.run();
  (void)rig.group.stop(false, rig.now);
  EXPECT_EQ(rig.output.drained, 0);
  EXPECT_TRUE(rig.feed({process::Stopped{}}).stopped);
  EXPECT_EQ(rig.output.drained, 1);
}

// ---- questions ----

TEST(WorkerGroupTest, StandardInputBelongsToOneRankWhileItsRoundLasts) {
  Options options = two_workers();
  options.stdin_rank = 3;
  Rig rig(options);
  EXPECT_FALSE(rig.group.has_input());
  rig.run();
  EXPECT_TRUE(rig.group.has_input());
  EXPECT_GE(rig.runner.requests[1].standard_input.get(), 0);
  EXPECT_LT(rig.runner.requests[0].standard_input.get(), 0);
  (void)rig.group.abandon(rig.now);
  EXPECT_FALSE(rig.group.has_input());

  options.stdin_rank = 1;  // of the node before
  Rig other(options);
  other.run();
  EXPECT_FALSE(other.group.has_input());
}

TEST(WorkerGroupTest, TheFirstNodeSaysThatNobodyReadsStandardInput) {
  Options options = two_workers();
  options.stdin_rank = 4;
  for (const int group_rank : {0, 1}) {
    Rig rig(options);
    auto assignment = second_node();
    assignment.group_rank = group_rank;
    testing::internal::CaptureStderr();
    rig.group.start(assignment, rig.now);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said, group_rank == 0 ? "drun: warning: --stdin 4: this round has 4 ranks, counted "
                                      "from 0: nobody reads standard input\n"
                                    : "");
  }
}

TEST(WorkerGroupTest, EachWorkerIsDescribed) {
  Rig rig;
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(kFirst)});
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(3))),
              ElementsAre("rank 2 (pid 101): running for 3.0 s", "rank 3: not started"));
  rig.output.last_outputs[kFirst] = Worker::Time::min();
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(3))),
              Contains("rank 2 (pid 101): running for 3.0 s, no output"));
  rig.output.last_outputs[kFirst] = kStart + std::chrono::seconds(1);
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(3))),
              Contains("rank 2 (pid 101): running for 3.0 s, silent for 2.0 s"));
  (void)rig.feed({exited(kFirst, 7)});
  EXPECT_THAT(texts(rig.group.describe(kStart)), Contains("rank 2: exit code 7"));
}

TEST(WorkerGroupTest, ManyWorkersAreDescribedByTheirState) {
  Options options = two_workers();
  options.nproc_per_node = 9;
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  for (process::WorkerId id = 1; id <= 7; ++id)
    (void)rig.feed({spawned(id)});
  rig.now = kStart + std::chrono::seconds(1);
  (void)rig.feed({spawned(8)});
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(5))),
              ElementsAre("rank 10: not started", "ranks 2-9: running for at least 4.0 s"));
  for (process::WorkerId id = 1; id <= 7; ++id)
    rig.output.last_outputs[id] = kStart + std::chrono::seconds(3);
  rig.output.last_outputs[8] = Worker::Time::min();
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(5))),
              ElementsAre("rank 10: not started", "rank 9: running for at least 4.0 s, no output",
                          "ranks 2-8: running for at least 4.0 s, silent for at least 2.0 s"));
  rig.output.last_outputs[3] = kStart;
  rig.output.last_outputs[8] = kStart + std::chrono::seconds(3);
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(5))),
              Contains("rank 4: silent the longest, for 5.0 s"));
  rig.output.last_outputs[5] = kStart + std::chrono::milliseconds(500);
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(5))),
              Contains("ranks 4,6: silent the longest, for at least 4.5 s"));
  for (const process::WorkerId id : {1U, 2U, 4U})
    rig.output.last_outputs[id] = kStart;
  EXPECT_THAT(texts(rig.group.describe(kStart + std::chrono::seconds(5))),
              testing::Not(Contains(testing::HasSubstr("longest"))));
}

TEST(WorkerGroupTest, WhoIsSilentTheLongestStandsOut) {
  const auto silent = [](int workers) {
    Options options = two_workers();
    options.nproc_per_node = workers;
    Rig rig(options);
    rig.group.start(second_node(), rig.now);
    const auto all = static_cast<process::WorkerId>(workers);
    for (process::WorkerId id = 1; id <= all; ++id) {
      (void)rig.feed({spawned(id)});
      rig.output.last_outputs[id] = kStart + std::chrono::seconds(id == 2 ? 0 : 8);
    }
    std::vector<std::string> result;
    for (const auto& state : rig.group.describe(kStart + std::chrono::seconds(9)))
      if (state.silent) result.push_back(state.text.substr(0, 6));
    return result;
  };
  EXPECT_THAT(silent(4), ElementsAre("rank 3"));
  EXPECT_THAT(silent(12), ElementsAre("rank 3"));
  EXPECT_THAT(silent(1), IsEmpty());
}

TEST(WorkerGroupTest, WhoHasNeverPrintedIsSilentSinceItsStart) {
  const auto never = Worker::Time::min();
  for (const int workers : {3, 9}) {
    Options options = two_workers();
    options.nproc_per_node = workers;
    Rig rig(options);
    rig.group.start(second_node(), rig.now);
    const auto all = static_cast<process::WorkerId>(workers);
    for (process::WorkerId id = 1; id <= all; ++id) {
      (void)rig.feed({spawned(id)});
      rig.output.last_outputs[id] = id == 2 ? never : kStart + std::chrono::seconds(8);
    }
    rig.now = kStart + std::chrono::seconds(9);
    std::vector<std::string> stand_out;
    for (const auto& state : rig.group.describe(rig.now))
      if (state.silent) stand_out.push_back(state.text.substr(0, 6));
    EXPECT_THAT(stand_out, ElementsAre("rank 3"));
    (void)rig.group.stop(false, rig.now);
    EXPECT_EQ(rig.group.stopped_ranks().silence, "rank 3 silent the longest, for 9.0 s");
  }
}

TEST(WorkerGroupTest, WhereOneOfTwoPrintsForBothTheOtherDoesNotStandOut) {
  Rig rig(two_workers());
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(1), spawned(2)});
  rig.output.last_outputs = {{1, kStart + std::chrono::seconds(8)}, {2, Worker::Time::min()}};
  rig.now = kStart + std::chrono::seconds(9);
  for (const auto& state : rig.group.describe(rig.now))
    EXPECT_FALSE(state.silent) << state.text;
  rig.output.last_outputs[2] = kStart;  // it has printed once
  int silent = 0;
  for (const auto& state : rig.group.describe(rig.now))
    silent += state.silent ? 1 : 0;
  EXPECT_EQ(silent, 1);
}

// ---- who was stopped ----

process::GuardianEvent killed(process::WorkerId id) {
  process::Exited event{id, static_cast<pid_t>(100 + id), {0, SIGKILL, false}, false, true};
  return event;
}

TEST(WorkerGroupTest, KnowsWhoRanWhenAFailureStoppedThemAndWhoNeededSigkill) {
  Options options = two_workers();
  options.nproc_per_node = 4;
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
  rig.output.last_outputs = {{1, kStart}, {2, kStart}, {3, kStart}, {4, kStart}};
  EXPECT_THAT(rig.group.stopped_ranks().running, IsEmpty());
  rig.now = kStart + std::chrono::seconds(9);
  rig.output.last_outputs[1] = rig.output.last_outputs[2] = rig.now;
  (void)rig.feed({exited(4, 7)});
  rig.now += milliseconds(1);
  (void)rig.feed({exited(2, 7), exited(1, 143)});  // the first of them by itself
  (void)rig.feed({killed(3), process::Stopped{3, 0, 0}});
  const StoppedRanks stopped = rig.group.stopped_ranks();
  EXPECT_THAT(stopped.running, ElementsAre(2, 4));
  EXPECT_THAT(stopped.silences, ElementsAre(milliseconds(0), milliseconds(9'000)));
  EXPECT_THAT(stopped.killed, ElementsAre(4));
  EXPECT_EQ(stopped.others_killed, 2U);
  EXPECT_EQ(stopped.silence, "rank 4 silent the longest, for 9.0 s");
  EXPECT_TRUE(stopped.few);
  EXPECT_THAT(stopped.silent, ElementsAre(4));
  EXPECT_EQ(stopped.silent_for, "9.0 s");
  EXPECT_EQ(stopped.host, "");
  EXPECT_FALSE(stopped.at_once);
  EXPECT_FALSE(stopped.expected);
  rig.group.start(second_node(), rig.now);
  EXPECT_THAT(rig.group.stopped_ranks().running, IsEmpty());
}

// Who ends with 0 because it was told to stop is another matter.
TEST(WorkerGroupTest, KnowsWhoHadEndedWithZeroBeforeTheStop) {
  Options options = two_workers();
  options.nproc_per_node = 4;
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
  (void)rig.feed({exited(2, 0)});
  EXPECT_THAT(rig.group.stopped_ranks().succeeded, IsEmpty());
  (void)rig.feed({exited(4, 7)});
  (void)rig.feed({exited(1, 0), exited(3, 143), process::Stopped{0, 0, 0}});
  EXPECT_THAT(rig.group.stopped_ranks().succeeded, ElementsAre(3));
  EXPECT_THAT(rig.group.stopped_ranks().running, ElementsAre(2, 4));
  rig.group.start(second_node(), rig.now);
  EXPECT_THAT(rig.group.stopped_ranks().succeeded, IsEmpty());
}

TEST(WorkerGroupTest, KnowsThatAllHadEndedWithZeroWhenAnotherNodeFails) {
  Rig rig(two_workers());
  rig.run();
  (void)rig.feed({exited(kFirst, 0), exited(kSecond, 0)});
  (void)rig.group.stop(false, rig.now);
  (void)rig.feed({process::Stopped{0, 0, 0}});
  EXPECT_THAT(rig.group.ranks_at_end().succeeded, ElementsAre(2, 3));
}

TEST(WorkerGroupTest, KnowsWhoRanAtAStopThatLeftThemNoGrace) {
  for (const char* how : {"hurry", "at once", "lease", "guardian", "no grace"}) {
    SCOPED_TRACE(how);
    const std::string way = how;
    Options options = two_workers();
    if (way == "no grace") options.shutdown_timeout = milliseconds(0);
    Rig rig(options);
    rig.run();
    (void)rig.feed({exited(kFirst, 0)});
    if (way == "lease") (void)rig.feed({process::LeaseOver()});
    if (way != "guardian") (void)rig.group.stop(way == "at once", rig.now);
    if (way == "hurry") rig.group.hurry();
    if (way == "guardian") (void)rig.group.abandon(rig.now);
    if (way != "guardian") (void)rig.feed({killed(kSecond), process::Stopped{1, 0, 0}});
    EXPECT_THAT(rig.group.stopped_ranks().running, ElementsAre(3));
    EXPECT_EQ(rig.group.stopped_ranks().at_once, way != "guardian");
  }
}

TEST(WorkerGroupTest, WhoRanIsNoNewsWhenTheJobWentOn) {
  Rig rig;
  rig.run();
  rig.group.end_round();
  (void)rig.group.stop(false, rig.now);
  (void)rig.feed({exited(kFirst, 143), killed(kSecond), process::Stopped{1, 0, 0}});
  EXPECT_THAT(rig.group.ranks_at_end().running, ElementsAre(2, 3)) << "it ends with this round";
  rig.group.end_round();
  EXPECT_THAT(rig.group.ranks_at_end().running, IsEmpty());
  EXPECT_THAT(rig.group.stopped_ranks().killed, ElementsAre(3)) << "the next round says it";
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(3), spawned(4)});
  (void)rig.group.stop(false, rig.now);
  EXPECT_THAT(rig.group.ranks_at_end().running, ElementsAre(2, 3));
}

TEST(WorkerGroupTest, WhoWasNeverStartedDidNotRun) {
  Rig rig;
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(kFirst)});
  (void)rig.group.stop(false, rig.now);
  (void)rig.feed({process::SpawnFailed{kSecond, ECANCELED, "start"}, exited(kFirst, 143)});
  (void)rig.feed({process::Stopped{}});
  EXPECT_THAT(rig.group.stopped_ranks().running, ElementsAre(2));
  EXPECT_TRUE(rig.group.stopped_ranks().expected);
}

TEST(WorkerGroupTest, OfTheLastThatRunsTheSilenceIsSaid) {
  Rig rig;
  rig.run();
  rig.output.last_outputs[kSecond] = kStart;
  rig.now += std::chrono::seconds(4);
  (void)rig.feed({exited(kFirst, 7)});
  EXPECT_EQ(rig.group.stopped_ranks().silence, "");
  EXPECT_EQ(rig.group.stopped_ranks().all_silent, std::chrono::seconds(4));
}

TEST(WorkerGroupTest, OfAllWhoWereSilentAlikeTheShortestSilenceIsSaid) {
  const auto never = Worker::Time::min();
  const auto at = [](int ms) { return kStart + milliseconds(ms); };
  using Known = std::map<process::WorkerId, Worker::Time>;
  const std::vector<std::pair<Known, std::optional<milliseconds>>> cases{
      {{{1, never}, {2, never}, {3, never}}, milliseconds(6'000)},
      {{{1, at(500)}, {2, at(900)}, {3, never}}, milliseconds(5'100)},
      {{{1, at(900)}, {2, at(5'500)}, {3, at(900)}}, std::nullopt},  // less than a second
      {{{1, never}, {2, never}}, std::nullopt},                      // of the third nobody knows
      {{}, std::nullopt}};
  for (const auto& [known, silence] : cases) {
    for (const bool fails : {false, true}) {
      Options options = two_workers();
      options.nproc_per_node = 4;
      Rig rig(options);
      rig.group.start(second_node(), rig.now);
      (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
      rig.output.last_outputs = known;
      rig.output.last_outputs[4] = kStart;
      rig.now = kStart + std::chrono::seconds(6);
      if (fails)
        (void)rig.feed({exited(4, 7)});
      else
        (void)rig.group.stop(false, rig.now);
      EXPECT_EQ(rig.group.stopped_ranks().all_silent, silence);
      EXPECT_EQ(rig.group.stopped_ranks().silences.back().has_value(), !fails || known.size() == 3);
      EXPECT_EQ(rig.group.stopped_ranks().silence, "");
    }
  }
}

TEST(WorkerGroupTest, OfFewThatStillRanAllWhoWereSilentAreKnown) {
  Options options = two_workers();
  options.nproc_per_node = 4;
  Rig rig(options);
  rig.group.start(second_node(), rig.now);
  (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
  rig.output.last_outputs = {
      {1, kStart}, {2, kStart}, {3, kStart}, {4, std::chrono::steady_clock::time_point::min()}};
  rig.now = kStart + std::chrono::seconds(9);
  (void)rig.feed({exited(1, 7), exited(2, 7)});
  const StoppedRanks stopped = rig.group.stopped_ranks();
  EXPECT_TRUE(stopped.few);
  EXPECT_THAT(stopped.silent, ElementsAre(4, 5));
  EXPECT_EQ(stopped.silent_for, "9.0 s");
}

TEST(WorkerGroupTest, OfManyThatStillRanOnlyAFewCanStandOut) {
  for (const bool one_hangs : {true, false}) {
    Options options = two_workers();
    options.nproc_per_node = 4;
    Rig rig(options);
    rig.group.start(second_node(), rig.now);
    (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
    rig.output.last_outputs = {{1, kStart}, {2, kStart}, {3, kStart}, {4, kStart}};
    rig.now = kStart + std::chrono::seconds(9);
    if (one_hangs) rig.output.last_outputs[2] = rig.output.last_outputs[3] = rig.now;
    (void)rig.feed({exited(1, 7)});
    const StoppedRanks stopped = rig.group.stopped_ranks();
    EXPECT_FALSE(stopped.few);
    EXPECT_EQ(stopped.silent, one_hangs ? std::vector<int>{5} : std::vector<int>{});
    EXPECT_EQ(stopped.silent_for, one_hangs ? "9.0 s" : "");
  }
}

TEST(WorkerGroupTest, AfterATimeOutTheOthersGetASecondToFailToo) {
  Options options = two_workers();
  options.nproc_per_node = 4;
  for (const bool all_end : {false, true}) {
    Rig rig(options);
    rendezvous::Assignment only_node = second_node();
    only_node.group_world_size = 1;
    rig.group.start(only_node, rig.now);
    (void)rig.feed({spawned(1), spawned(2), spawned(3), spawned(4)});
    (void)rig.runner.take_calls();
    rig.output.tails[2] = {"TimeoutError: timed out"};
    EXPECT_EQ(told(rig.feed({exited(2, 1)}), rig), "");
    EXPECT_EQ(rig.group.next_deadline(), kStart + milliseconds(1'000));
    rig.now += milliseconds(700);
    EXPECT_EQ(told(rig.feed({exited(1, 1), exited(3, 1)}), rig), "");
    if (all_end) {
      EXPECT_THAT(told(rig.feed({exited(4, 1)}), rig), HasSubstr("failed 3+2"));
      continue;
    }
    EXPECT_EQ(told(rig.at(milliseconds(1'000)), rig), "stop SIGTERM 5");
    (void)rig.feed({exited(4, 143)});
    const GroupNews news = rig.feed({process::Stopped{}});
    EXPECT_TRUE(news.stopped);
    EXPECT_THAT(rig.group.stopped_ranks().running, ElementsAre(5));
  }
}

// The leader takes the first report for the cause, and a later one perhaps not at all.
TEST(WorkerGroupTest, OfSeveralNodesATimeOutIsReportedAtOnce) {
  Rig rig;
  rendezvous::Assignment one_of_two = second_node();
  one_of_two.group_world_size = 2;
  rig.group.start(one_of_two, rig.now);
  (void)rig.feed({spawned(1), spawned(2)});
  rig.output.tails[1] = {"TimeoutError: timed out"};
  EXPECT_THAT(told(rig.feed({exited(1, 1)}), rig), testing::Not(HasSubstr("failed")));
  EXPECT_EQ(rig.group.next_deadline(), kStart + milliseconds(150));
  EXPECT_THAT(told(rig.at(milliseconds(150)), rig), HasSubstr("failed"));
  EXPECT_EQ(rig.group.next_deadline(), kStart + milliseconds(1'000));
}

TEST(WorkerGroupTest, AfterAnyOtherFailureTheOthersAreStoppedAtOnce) {
  Rig rig;
  rig.run();
  rig.output.tails[kFirst] = {"ValueError: bad value"};
  EXPECT_THAT(told(rig.feed({exited(kFirst, 1)}), rig), HasSubstr("stop SIGTERM"));
}

// ---- what is done before the others are stopped ----

struct HeldRig : Rig {
  FakeBeforeStop before;
  WorkerGroup held{options, "node1", runner, output, files, {nullptr, nullptr, nullptr, &before}};
  GroupNews feed(const std::vector<process::GuardianEvent>& events) {
    GroupNews news;
    for (const auto& event : events)
      merge(news, held.on_event(event, now));
    merge(news, held.on_time(now));
    return news;
  }
  GroupNews at(milliseconds later) {
    now = kStart + later;
    return held.on_time(now);
  }
  void run() {
    held.start(second_node(), now);
    (void)feed({spawned(kFirst), spawned(kSecond)});
    (void)runner.take_calls();
  }
};

// The failure itself is told in the meantime.
TEST(WorkerGroupHoldTest, TheOthersAreStoppedOnceItIsDone) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 1)});
  EXPECT_EQ(rig.before.begun, 1);
  EXPECT_THAT(told(rig.at(milliseconds(200)), rig), testing::StartsWith("failed 2"));
  EXPECT_EQ(rig.held.next_deadline(), kStart + milliseconds(5'000));
  rig.before.over();
  EXPECT_EQ(told(rig.at(milliseconds(300)), rig), "stop SIGTERM 5");
}

// It may be the only one.
TEST(WorkerGroupHoldTest, OneThatHangsIsLookedAtBeforeItIsStopped) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 0)});
  RankFault fault;
  fault.exit_code = 124;
  fault.hangs = true;
  rig.held.on_fault(1, fault);
  EXPECT_THAT(told(rig.at(milliseconds(100)), rig), testing::Not(HasSubstr("stop")));
  EXPECT_EQ(rig.before.begun, 1);
  EXPECT_TRUE(rig.before.begun_for_hang);
  rig.before.over();
  EXPECT_THAT(told(rig.at(milliseconds(300)), rig), HasSubstr("stop SIGTERM 5"));
}

// To stop it would fail those of other nodes for another reason.
TEST(WorkerGroupHoldTest, OneThatHangsWithOtherNodesRunsUntilTheyHaveToldOfTheirs) {
  for (const int nodes : {1, 2}) {
    HeldRig rig;
    rig.before.wanted = false;
    auto place = second_node();
    place.group_world_size = nodes;
    rig.held.start(place, rig.now);
    (void)rig.feed({spawned(kFirst), spawned(kSecond)});
    (void)rig.runner.take_calls();
    RankFault fault;
    fault.exit_code = 124;
    fault.hangs = true;
    fault.clue = {true, 7, 1, milliseconds(4'000)};
    rig.held.on_fault(1, fault);
    if (nodes == 1) {
      EXPECT_THAT(told(rig.at(milliseconds(0)), rig), HasSubstr("stop SIGTERM 5"));
      continue;
    }
    EXPECT_EQ(told(rig.at(milliseconds(0)), rig), "failing");
    const GroupNews news = rig.at(milliseconds(200));
    ASSERT_TRUE(news.failure);
    EXPECT_EQ(news.failure->clue, fault.clue);
    // The leader counts from when it has heard of it, and is the one to stop them.
    EXPECT_EQ(told(rig.at(milliseconds(4'999)), rig), "");
    EXPECT_EQ(rig.held.next_deadline(), kStart + milliseconds(5'000));
    EXPECT_EQ(told(rig.at(milliseconds(5'000)), rig), "stop SIGTERM 5");
  }
}

// Of several on one node.
TEST(WorkerGroupHoldTest, WhoTheOthersWaitForIsTheFirstOfItsNode) {
  HeldRig rig;
  rig.run();
  RankFault fault;
  fault.exit_code = 124;
  fault.hangs = true;
  fault.clue.alike = 5;
  rig.held.on_fault(0, fault);
  fault.clue.behind = true;
  rig.held.on_fault(1, fault);
  (void)rig.at(milliseconds(0));
  const GroupNews news = rig.at(milliseconds(200));
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 3);
}

TEST(WorkerGroupHoldTest, ItIsNotWaitedForLongerThanItsLimit) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 1)});
  EXPECT_THAT(told(rig.at(milliseconds(4'999)), rig), testing::Not(HasSubstr("stop")));
  EXPECT_THAT(told(rig.at(milliseconds(5'000)), rig), HasSubstr("stop SIGTERM 5"));
  rig.before.over();  // too late: nothing happens
  EXPECT_EQ(told(rig.at(milliseconds(5'001)), rig), "");
}

TEST(WorkerGroupHoldTest, WhatHasNothingToDoHoldsNothingUp) {
  HeldRig rig;
  rig.before.wanted = false;
  rig.run();
  EXPECT_THAT(told(rig.feed({exited(kFirst, 1)}), rig), HasSubstr("stop SIGTERM 5"));
}

TEST(WorkerGroupHoldTest, AStopThatIsInAHurryOvertakesIt) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 1)});
  EXPECT_EQ(told(rig.held.stop(true, rig.now), rig), "stop SIGKILL 0");
}

TEST(WorkerGroupHoldTest, NothingIsDoneForTheLastWorker) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kSecond, 0)});
  EXPECT_THAT(told(rig.feed({exited(kFirst, 1)}), rig), HasSubstr("stop SIGTERM 5"));
  EXPECT_EQ(rig.before.begun, 0);
}

// It belongs to the round before.
TEST(WorkerGroupHoldTest, WhatIsDoneAfterTheRoundChangesNothing) {
  HeldRig rig;
  rig.run();
  (void)rig.feed({exited(kFirst, 1)});
  const auto over = rig.before.over;
  (void)rig.held.stop(true, rig.now);
  (void)rig.feed({exited(kSecond, 0, 9), process::Stopped{}});
  (void)rig.at(milliseconds(1'000));
  (void)rig.runner.take_calls();
  rig.held.start(second_node(), rig.now);
  (void)rig.feed({spawned(3), spawned(4), exited(3, 1)});
  (void)rig.runner.take_calls();
  over();
  EXPECT_EQ(told(rig.at(milliseconds(1'001)), rig), "");
}

// ---- the service of the ranks ----

// Each worker gets a descriptor, and has the fault that the test says when it ends.
class FakeService final : public RankService {
 public:
  void begin(const rendezvous::Assignment& /*assignment*/, int workers) override {
    calls += "begin " + std::to_string(workers) + ",";
  }
  FileDescriptor connect(int local_rank) override {
    if (local_rank == refused)
      throw std::system_error(EMFILE, std::generic_category(), "make the socket pair");
    return FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  }
  std::optional<RankFault> at_end(int local_rank, bool success) override {
    calls += "end of " + std::to_string(local_rank) + (success ? " with 0," : ",");
    return fault;
  }
  void end() override { calls += "end,"; }

  std::string calls;
  std::optional<RankFault> fault;
  int refused = -1;
};

struct ServedRig : Rig {
  FakeService service;
  WorkerGroup served{options, "node1", runner, output, files, {&service, nullptr}};
  GroupNews feed(const std::vector<process::GuardianEvent>& events) {
    GroupNews news;
    for (const auto& event : events)
      merge(news, served.on_event(event, now));
    merge(news, served.on_time(now));
    return news;
  }
  void run() {
    served.start(second_node(), now);
    (void)feed({spawned(kFirst), spawned(kSecond)});
    (void)runner.take_calls();
  }
};

TEST(WorkerGroupServiceTest, WorkersAreServedFromTheirStartToTheEndOfTheRound) {
  ServedRig rig;
  rig.run();
  ASSERT_EQ(rig.runner.requests.size(), 2U);
  EXPECT_TRUE(rig.runner.requests[1].service.valid());
  EXPECT_EQ(told(rig.feed({exited(kFirst, 0), exited(kSecond, 0)}), rig), "succeeded");
  EXPECT_EQ(rig.service.calls, "begin 2,end of 0 with 0,end of 1 with 0,");
  (void)rig.served.stop(false, rig.now);
  (void)rig.feed({process::Stopped{}});
  EXPECT_TRUE(rig.service.calls.ends_with("end,")) << rig.service.calls;
}

TEST(WorkerGroupServiceTest, AFaultIsAFailureOfAWorkerThatStillRuns) {
  ServedRig rig;
  rig.run();
  rig.served.on_fault(1, {7, "aborted the job with code 7"});
  rig.served.on_fault(1, {8, "a second one"});
  EXPECT_EQ(told(rig.feed({}), rig), "stop SIGTERM 5");
  const GroupNews news = rig.feed({exited(kFirst, 0, SIGTERM), exited(kSecond, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 3);
  EXPECT_EQ(news.failure->exit_code, 7);
  EXPECT_EQ(news.failure->signal, 0);
  EXPECT_EQ(news.failure->cause, "aborted the job with code 7");
  EXPECT_THAT(news.failure->others, IsEmpty());
  EXPECT_THAT(rig.served.stopped_ranks().running, ElementsAre(2));
}

TEST(WorkerGroupServiceTest, AFaultThatIsKnownAtTheEndMakesItAFailure) {
  ServedRig rig;
  rig.run();
  rig.service.fault = RankFault{1, "ended without MPI_Finalize"};
  (void)rig.feed({exited(kFirst, 0)});
  rig.service.fault.reset();
  const GroupNews news = rig.feed({exited(kSecond, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->rank, 2);
  EXPECT_EQ(news.failure->exit_code, 1);
  EXPECT_EQ(news.failure->cause, "exit code 0 (ended without MPI_Finalize)");
}

TEST(WorkerGroupServiceTest, AWorkersOwnCodeAndSignalAreKeptBesideItsFault) {
  ServedRig rig;
  rig.run();
  rig.service.fault = RankFault{7, "aborted the job with code 7"};
  (void)rig.feed({exited(kFirst, 3)});
  rig.service.fault.reset();
  const GroupNews news = rig.feed({exited(kSecond, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_EQ(news.failure->exit_code, 3);
  EXPECT_EQ(news.failure->cause, "exit code 3 (aborted the job with code 7)");
}

TEST(WorkerGroupServiceTest, AWorkerThatCannotBeServedIsNotStarted) {
  ServedRig rig;
  rig.service.refused = 1;
  rig.served.start(second_node(), rig.now);
  (void)rig.feed({spawned(kFirst)});
  const GroupNews news = rig.feed({exited(kFirst, 0, SIGTERM)});
  ASSERT_TRUE(news.failure);
  EXPECT_THAT(news.failure->cause, HasSubstr("make the socket pair: Too many open files"));
  EXPECT_EQ(news.failure->exit_code, 125);
}

// ---- where the ranks can listen ----

Options tensorflow() {
  Options options = two_workers();
  options.frameworks.tensorflow = true;
  return options;
}

struct RigWithPeers : Rig {
  RigWithPeers() : Rig(tensorflow()) {}
  GroupNews pump() { return known.on_time(now); }

  FakeDirectory directory;
  WorkerGroup known{options, "node1", runner, output, files, {nullptr, &directory}};
};

TEST(WorkerGroupPeersTest, WorkersStartOnceAllPeersAreKnown) {
  RigWithPeers rig;
  rig.known.start(second_node(), rig.now);
  EXPECT_EQ(rig.directory.calls, "ask 3 2,");
  EXPECT_EQ(told(rig.pump(), rig), "");
  EXPECT_FALSE(rig.known.next_deadline());
  rig.directory.answer(PeerDirectory::Places{"a:1", "a:2", "b:3", "b:4"});
  EXPECT_TRUE(rig.known.next_deadline());
  (void)rig.pump();
  EXPECT_EQ(rig.directory.calls, "ask 3 2,let go,");  // before a worker binds its port
  ASSERT_EQ(rig.runner.requests.size(), 2U);
  EXPECT_THAT(rig.runner.requests[1].environment,
              Contains(testing::AllOf(HasSubstr("TF_CONFIG="), HasSubstr("\"index\":3"))));
}

TEST(WorkerGroupPeersTest, AStopMeanwhileIsTheEndOfTheRound) {
  RigWithPeers rig;
  rig.known.start(second_node(), rig.now);
  EXPECT_TRUE(rig.known.stop(false, rig.now).stopped);
  EXPECT_TRUE(rig.directory.calls.ends_with("let go,"));
  // What comes late is not for the next round.
  const auto late = std::exchange(rig.directory.answer, nullptr);
  rig.known.start(second_node(), rig.now);
  late(PeerDirectory::Places{"a:1", "a:2", "b:3", "b:4"});
  (void)rig.pump();
  EXPECT_THAT(rig.runner.requests, IsEmpty());
}

TEST(WorkerGroupPeersTest, WithoutPlacesTheNodeHasFailed) {
  RigWithPeers rig;
  rig.known.start(second_node(), rig.now);
  rig.directory.answer(Error(std::make_error_code(std::errc::address_in_use), "no free port"));
  const GroupNews news = rig.pump();
  ASSERT_TRUE(news.failure);
  EXPECT_THAT(news.failure->cause, HasSubstr("no free port"));
  EXPECT_EQ(news.failure->exit_code, 125);
  EXPECT_THAT(rig.runner.requests, IsEmpty());
}

// ---- what is to be over before a round starts ----

struct LateRig : Rig {
  LateRig() { services.before_start = &before; }
  FakeBeforeStart before;
  RoundServices services;
  std::optional<WorkerGroup> late;
  void start() {
    late.emplace(options, "node1", runner, output, files, services);
    late->start(second_node(), now);
  }
  bool starts(milliseconds later) {
    (void)late->on_time(kStart + later);
    return runner.take_calls().find("spawn") != std::string::npos;
  }
};

TEST(WorkerGroupLateStartTest, TheWorkersStartWhenItIsOver) {
  LateRig rig;
  rig.start();
  EXPECT_FALSE(rig.starts(milliseconds(1)));
  EXPECT_EQ(rig.late->next_deadline(), kStart + milliseconds(1'000));
  rig.before.over();
  EXPECT_EQ(rig.late->next_deadline(), WorkerGroup::Time{});
  EXPECT_TRUE(rig.starts(milliseconds(2)));
}

TEST(WorkerGroupLateStartTest, ItIsNotWaitedForLongerThanItsLimit) {
  LateRig rig;
  rig.start();
  EXPECT_FALSE(rig.starts(milliseconds(999)));
  EXPECT_TRUE(rig.starts(milliseconds(1'000)));
  rig.before.over();
  EXPECT_FALSE(rig.starts(milliseconds(1'001))) << "once";
}

TEST(WorkerGroupLateStartTest, WithNothingToWaitForTheyStartAtOnce) {
  LateRig rig;
  rig.before.wanted = false;
  rig.start();
  EXPECT_THAT(rig.runner.take_calls(), HasSubstr("spawn"));
}

TEST(WorkerGroupLateStartTest, AStopMeanwhileStartsNothing) {
  LateRig rig;
  rig.start();
  EXPECT_TRUE(rig.late->stop(false, rig.now).stopped);
  rig.before.over();
  EXPECT_FALSE(rig.starts(milliseconds(1'000)));
}

}  // namespace
}  // namespace drun::launcher
