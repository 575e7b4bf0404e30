// The store and its host: jobs that share one, jobs that lose it, jobs whose store comes back.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/protocol/control_protocol.hpp"
#include "store_process.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"
#include "support/scripted_peer.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

// Says that it runs, and ends when the file is there.
Arguments until(const std::filesystem::path& file) {
  return {"sh", "-c", "echo ready; until [ -e " + file.string() + " ]; do sleep 0.05; done"};
}

void make(const std::filesystem::path& file) {
  const FileDescriptor made(::creat(file.c_str(), 0600));
}

Finished ctl(const ReservedPort& port, const Arguments& words) {
  Launch launch;
  launch.argv = Arguments{places::program("drunctl"), "--endpoint", port.endpoint()} + words;
  return DrunProcess(std::move(launch)).finish();
}

Arguments job(const ReservedPort& port, const std::string& id) {
  return {"--rdzv-endpoint", port.endpoint(), "--rdzv-id", id, "--rdzv-conf", "is_host=0"};
}

TEST(SharedStoreTest, AnEndedJobIsListedAndDeletedAndItsIdUsedAgain) {
  const ReservedPort port;
  const TempDir directory;
  const auto end = directory.path() / "end";
  Store store(std::to_string(port.number()));
  EXPECT_EQ(ctl(port, {"jobs"}).out, "");
  DrunProcess first(job(port, "again/1") + until(end));
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  EXPECT_EQ(ctl(port, {"jobs"}).out, "again/1 running 1 agent\n");
  const Finished early = ctl(port, {"delete-job", "again/1"});
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.err, HasSubstr("the job 'again/1' has agents"));
  make(end);
  EXPECT_EQ(first.finish().code, 0);
  EXPECT_EQ(ctl(port, {"jobs"}).out, "again/1 ended 0 agents, exit code 0\n");
  EXPECT_EQ(ctl(port, {"--json", "jobs"}).out,
            R"({"id":"again/1","state":"ended","agents":0,"round":1,"exit_code":0})"
            "\n");
  const Finished refused = run_drun(job(port, "again/1") + Arguments{"true"});
  EXPECT_EQ(refused.code, 125);
  EXPECT_EQ(ctl(port, {"delete-job", "again/1"}).code, 0);
  EXPECT_EQ(ctl(port, {"--raw", "keys", "drun/"}).out, "");
  EXPECT_THAT(ctl(port, {"delete-job", "again/1"}).err, HasSubstr("there is no job 'again/1'"));
  EXPECT_EQ(run_drun(job(port, "again/1") + Arguments{"true"}).code, 0);
}

TEST(SharedStoreTest, WhatOthersWriteDoesNotActOnATerminal) {
  const ReservedPort port;
  const TempDir directory;
  Store store(std::to_string(port.number()));
  DrunProcess drun(job(port, "victim") + until(directory.path() / "never"));
  ASSERT_TRUE(drun.wait_for_out("ready")) << drun.err();
  const Arguments set{
      "--raw", "set", "drun/victim/outcome",
      R"({"end":"stopped","exit_code":3,"text":"evil\u001b[2J\u0007\u009b\nforged"})"};
  EXPECT_EQ(ctl(port, set).code, 0);
  const Finished ended = drun.finish();
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, HasSubstr(R"(evil\x1b[2J\x07\xc2\x9b\nforged)"));
  EXPECT_THAT(ended.err, Not(HasSubstr("\x1b")));
}

TEST(SharedStoreTest, AnEndedJobIsForgottenAfterItsTime) {
  const ReservedPort port;
  Store store(std::to_string(port.number()), {"--forget-ended", "100ms"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run_drun(job(port, "requeued") + Arguments{"true"}).code, 0);
    EXPECT_TRUE(eventually([&] { return ctl(port, {"jobs"}).out.empty(); }));
  }
}

TEST(SharedStoreTest, AJobOutlivesTheJobWhoseAgentCarriesItsStore) {
  const ReservedPort port;
  const TempDir directory;
  const auto first = directory.path() / "first";
  const auto second = directory.path() / "second";
  const Arguments place = {"--nnodes",        "1:2",
                           "--rdzv-endpoint", port.endpoint(),
                           "--rdzv-conf",     "last_call_timeout=0.1,keep_alive_interval=20",
                           "--max-restarts",  "1"};
  DrunProcess a(place + Arguments{"--rdzv-id", "a"} + until(first));
  ASSERT_TRUE(a.wait_for_out("ready")) << a.err();
  DrunProcess b(place + Arguments{"--rdzv-id", "b/c"} + until(second));
  ASSERT_TRUE(b.wait_for_out("ready")) << b.err();
  make(first);
  EXPECT_TRUE(a.wait_for_err("serves the store on for rendezvous id 'b/c' (1 node)")) << a.err();
  // The job that lives still gets what it needs of the store: a restart.
  for (const pid_t worker : b.pids_with("RANK=0"))
    ::kill(worker, SIGKILL);
  EXPECT_TRUE(eventually([&] {
    (void)b.wait_for_out("ready\nready", milliseconds(10));
    return b.out() == "ready\nready\n";
  })) << b.err();
  EXPECT_TRUE(a.running());
  make(second);
  const Finished job = b.finish();
  EXPECT_EQ(job.code, 0) << job.err;
  const Finished host = a.finish();
  EXPECT_EQ(host.code, 0) << host.err;
  EXPECT_THAT(job.survivors, IsEmpty());
  EXPECT_THAT(host.survivors, IsEmpty());
}

// A store up to the moment in which an agent has its session: nothing that is asked after it is
// answered, and when the agent has asked, the connection ends.
void serve_until_session(ScriptedConnection& connection) {
  using namespace store::control;
  (void)connection.read(kOpeningBytes);
  std::string bytes;
  encode(bytes, 0, Reply(Welcome{kHighestVersion, 1U << 20, 1U << 10, 1U << 20, 1U << 10}));
  connection.write(bytes);
  std::string like;
  encode(like, 1, Request(OpenSession{}));
  const std::string request = connection.read(like.size());
  bytes.clear();
  encode(bytes, next_frame(request, 1U << 20).frame.request,
         Reply(Session{1, Token{}, 8000, 1000}));
  connection.write(bytes);
  (void)connection.read(1);
}

// The store of another job's agent, which ends between this one's session and its first word.
TEST(SharedStoreTest, AnAgentWhoseStoreGoesBeforeItIsKnownThereLooksForItAgain) {
  for (const bool known_place : {false, true}) {
    const ReservedPort port;
    std::atomic<bool> gone{false};
    std::optional<ScriptedPeer> store(
        std::in_place,
        [&](ScriptedConnection& connection) {
          if (connection.number() > 0) return connection.wait_for_close();
          serve_until_session(connection);
          gone = true;
        },
        static_cast<std::uint16_t>(port.number()));
    const Arguments place = known_place ? Arguments{"--node-rank", "0"} : Arguments{};
    DrunProcess agent(Arguments{"--nnodes", "1:2", "--rdzv-endpoint", port.endpoint(),
                                "--rdzv-conf", "last_call_timeout=0.1", "--rdzv-id", "b"} +
                      place + Arguments{"sh", "-c", "echo $RANK of $WORLD_SIZE"});
    EXPECT_TRUE(eventually([&] { return gone.load(); })) << agent.err();
    store.reset();
    const Finished finished = agent.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.out, "0 of 1\n");
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(SharedStoreTest, AStoreThatGoesAgainAndAgainIsLookedForUntilTheJoinTimeout) {
  for (const std::string conf : {"join_timeout=2", "join_timeout=2,is_host=false"}) {
    const ScriptedPeer store(serve_until_session);
    const Finished finished = run_drun({"--nnodes", "1:2", "--rdzv-endpoint",
                                        to_string(store.endpoint()), "--rdzv-conf", conf, "true"});
    EXPECT_EQ(finished.code, 124) << conf << ": " << finished.err;
    EXPECT_THAT(finished.err, Not(HasSubstr("no round of the job began")));  // 10 s too late
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(SharedStoreTest, AnAgentThatWaitsForTheStoreOfItsMachineCarriesItWhereNobodyDoes) {
  const ReservedPort port;
  std::atomic<bool> greeted{false};
  std::optional<ScriptedPeer> store(
      std::in_place,
      [&](ScriptedConnection& connection) {
        greeted = connection.read(1).size() == 1;
        connection.wait_for_close();
      },
      static_cast<std::uint16_t>(port.number()));
  DrunProcess agent({"--nnodes", "1:2", "--rdzv-endpoint", port.endpoint(), "--rdzv-conf",
                     "last_call_timeout=0.1", "echo", "done"});
  EXPECT_TRUE(eventually([&] { return greeted.load(); })) << agent.err();
  store.reset();
  const Finished finished = agent.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "done\n");
}

TEST(SharedStoreTest, ASignalEndsAnAgentThatOnlyServesOn) {
  const ReservedPort port;
  const TempDir directory;
  const Arguments place = {
      "--nnodes",        "1:2",
      "--rdzv-endpoint", port.endpoint(),
      "--rdzv-conf",     "last_call_timeout=0.1,keep_alive_interval=5,keep_alive_max_attempt=2"};
  DrunProcess a(place + Arguments{"--rdzv-id", "a"} + until(directory.path() / "first"));
  ASSERT_TRUE(a.wait_for_out("ready")) << a.err();
  DrunProcess b(place + Arguments{"--rdzv-id", "b"} + until(directory.path() / "never"));
  ASSERT_TRUE(b.wait_for_out("ready")) << b.err();
  make(directory.path() / "first");
  ASSERT_TRUE(a.wait_for_err("serves the store on")) << a.err();
  a.signal(SIGTERM);
  const Finished host = a.finish();
  EXPECT_EQ(host.code, 0) << host.err;  // its own job's
  EXPECT_TRUE(b.wait_for_err("the store is now at ")) << b.err();
  b.signal(SIGTERM);
  const Finished job = b.finish();
  EXPECT_EQ(job.code, 128 + SIGTERM) << job.err;
  EXPECT_THAT(job.survivors, IsEmpty());
}

TEST(SharedStoreTest, JobsOfOneStoreAreNeverMixedUp) {
  const ReservedPort port;
  Store store(std::to_string(port.number()));
  const auto agent = [&](const std::string& id) {
    return Arguments{"--nnodes",
                     "2",
                     "--rdzv-endpoint",
                     port.endpoint(),
                     "--rdzv-id",
                     id,
                     "sh",
                     "-c",
                     "echo " + id + " $RANK $WORLD_SIZE $TORCHELASTIC_RUN_ID"};
  };
  std::vector<std::unique_ptr<DrunProcess>> agents;
  for (const char* id : {"x", "y", "x", "y"})
    agents.push_back(std::make_unique<DrunProcess>(agent(id)));
  std::vector<std::string> lines;
  for (auto& each : agents) {
    const Finished finished = each->finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.survivors, IsEmpty());
    lines.push_back(finished.out);
  }
  EXPECT_THAT(lines,
              testing::UnorderedElementsAre("x 0 2 x\n", "x 1 2 x\n", "y 0 2 y\n", "y 1 2 y\n"));
}

TEST(HostedStoreTest, ItsDeathEndsTheOthersWithinSecondsInOneLine) {
  const ReservedPort port;
  const Arguments agent = {"--nnodes",
                           "2",
                           "--nproc-per-node",
                           "2",
                           "--rdzv-endpoint",
                           port.endpoint(),
                           "--rdzv-conf",
                           "successors=0",
                           "sh",
                           "-c",
                           "echo ready; exec sleep 1000"};
  DrunProcess host(agent);
  ASSERT_TRUE(host.wait_for_err("1 of 2 nodes")) << host.err();
  DrunProcess other(agent);
  ASSERT_TRUE(host.wait_for_out("ready")) << host.err();
  ASSERT_TRUE(other.wait_for_out("ready\nready\n")) << other.err();
  host.signal(SIGKILL);
  EXPECT_TRUE(host.wait());
  const auto killed = Clock::now();
  const Finished finished = other.finish();
  EXPECT_EQ(finished.code, 125) << finished.err;
  EXPECT_LT(Clock::now() - killed, std::chrono::seconds(45));  // the keep-alive limit is 6
  EXPECT_THAT(lines_but_waiting(finished.err), SizeIs(1)) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("drun: error: lost the store at " + port.endpoint()));
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_TRUE(host.survivors_gone(kPatience));
}

TEST(ExternalStoreTest, StoppingAndStartingItRestartsNoWorkerAndLosesNoJob) {
  const ReservedPort port;
  const TempDir directory;
  const Arguments snapshot = {"--snapshot", (directory.path() / "snapshot").string()};
  auto store = std::make_unique<Store>(std::to_string(port.number()), snapshot);
  const Arguments agent = Arguments{"--nnodes",         "3",
                                    "--nproc-per-node", "2",
                                    "--rdzv-endpoint",  port.endpoint(),
                                    "--rdzv-id",        "stays",
                                    "--rdzv-conf",      "is_host=0,keep_alive_interval=20"} +
                          until(directory.path() / "done");
  DrunProcess a(agent);
  DrunProcess b(agent);
  DrunProcess c(agent);
  const std::vector<DrunProcess*> all = {&a, &b, &c};
  for (DrunProcess* each : all)
    ASSERT_TRUE(each->wait_for_out("ready\nready\n")) << each->err();
  const auto workers = [&] {
    std::vector<pid_t> pids;
    for (const char* rank : {"RANK=0", "RANK=1", "RANK=2", "RANK=3", "RANK=4", "RANK=5"}) {
      for (DrunProcess* each : all) {
        for (const pid_t pid : each->pids_with(rank))
          if (::getpgid(pid) == pid) pids.push_back(pid);  // not what it has started
      }
    }
    return pids;
  };
  const auto before = workers();
  EXPECT_THAT(before, SizeIs(6));
  for (int times = 0; times < 2; ++times) {
    store->stop();
    store = std::make_unique<Store>(std::to_string(port.number()), snapshot);
  }
  EXPECT_EQ(workers(), before);
  make(directory.path() / "done");
  for (DrunProcess* each : all) {
    const Finished finished = each->finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.out, "ready\nready\n");
    EXPECT_THAT(finished.err, Not(HasSubstr("the store is now at")));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
  EXPECT_EQ(ctl(port, {"jobs"}).out, "stays ended 0 agents, exit code 0\n");
}

TEST(ExternalStoreTest, TheIdOfAJobThatHasEndedIsRefused) {
  const ReservedPort port;
  Store store(std::to_string(port.number()));
  const Arguments agent = {"--nnodes",  "1",    "--rdzv-endpoint", port.endpoint(),
                           "--rdzv-id", "once", "--rdzv-conf",     "is_host=0",
                           "sh",        "-c",   "echo ran"};
  EXPECT_EQ(run_drun(agent).code, 0);
  const Finished again = run_drun(agent);
  EXPECT_EQ(again.code, 125);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("the job 'once' has ended before this node came"));
  EXPECT_THAT(lines_but_waiting(again.err), SizeIs(1));
}

}  // namespace
}  // namespace drun::test
