// Whom a rank waits for, case by case. The worker is process 10.
#include "hang/awaited_process.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace drun::hang {
namespace {

using Whom = Awaited::Whom;
using Processes = std::map<pid_t, WaitingProcess>;

WaitingProcess with(pid_t parent, bool connected = false) {
  WaitingProcess process;
  process.parent = parent;
  process.connected = connected;
  return process;
}

WaitingProcess waits_for_children(pid_t parent, bool connected = false) {
  WaitingProcess process = with(parent, connected);
  process.awaits_children = true;
  return process;
}

WaitingProcess reads(pid_t parent, std::vector<std::string> files, bool connected = false) {
  WaitingProcess process = with(parent, connected);
  process.awaits_files = std::move(files);
  return process;
}

WaitingProcess answers(std::vector<std::string> files, WaitingProcess process) {
  process.answers = {files.begin(), files.end()};
  return process;
}

WaitingProcess receives(pid_t parent) {
  WaitingProcess process = reads(parent, {"socket:[1]"}, true);
  process.awaits_network = true;
  return process;
}

WaitingProcess locked_beside_receiver(pid_t parent) {
  WaitingProcess process = with(parent, true);
  process.threads_on_network = true;
  return process;
}

struct Case {
  const char* what;
  Processes processes;
  Whom whom;
  pid_t program = 10;
  pid_t child = 0;
};

TEST(AwaitedProcessTest, WhomARankWaitsForFollowsFromItsProcesses) {
  const std::vector<Case> cases = {
      {"a lock", {{10, with(1, true)}}, Whom::Unknown},
      {"another rank", {{10, receives(1)}}, Whom::Others},
      {"another rank, by a thread of gloo", {{10, locked_beside_receiver(1)}}, Whom::Others},
      {"a pipe of somebody else", {{10, reads(1, {"pipe:[1]"}, true)}}, Whom::Unknown},
      {"the end of a child that hangs",
       {{10, waits_for_children(1, true)}, {11, with(10, true)}},
       Whom::OwnChild,
       10,
       11},
      {"what a data loader should bring",
       {{10, reads(1, {"pipe:[1]"}, true)}, {11, answers({"pipe:[1]"}, with(10))}},
       Whom::OwnChild,
       10,
       11},
      {"the same, though it has a thread of gloo that always waits for others",
       {{10,
         [] {
           auto process = reads(1, {"pipe:[1]"}, true);
           process.threads_on_network = true;
           return process;
         }()},
        {11, answers({"pipe:[1]"}, with(10))}},
       Whom::OwnChild,
       10,
       11},
      {"a child below a server of forks",
       {{10, reads(1, {"socket:[1]"}, true)},
        {11, with(10)},
        {12, answers({"socket:[1]"}, with(11))}},
       Whom::OwnChild,
       10,
       12},
      {"a pipe that only a process beside it has",
       {{10, reads(1, {"pipe:[1]"}, true)}, {11, answers({"pipe:[1]"}, with(1))}},
       Whom::Unknown},
      {"of two data loaders the one that has something to do",
       {{10, answers({"pipe:[2]"}, reads(1, {"pipe:[1]"}, true))},
        {11, answers({"pipe:[1]"}, reads(10, {"pipe:[2]"}))},
        {12, answers({"pipe:[1]"}, with(10))}},
       Whom::OwnChild,
       10,
       12},
      {"two data loaders that both have nothing to do",
       {{10, answers({"pipe:[2]"}, reads(1, {"pipe:[1]"}, true))},
        {11, answers({"pipe:[1]"}, reads(10, {"pipe:[2]"}))},
        {12, answers({"pipe:[1]"}, reads(10, {"pipe:[2]"}))}},
       Whom::OwnChild,
       10,
       11},
      {"a child that waits for a file server, or for another rank",
       {{10, reads(1, {"pipe:[1]"}, true)}, {11, answers({"pipe:[1]"}, receives(10))}},
       Whom::Others},
      {"a child of a child",
       {{10, waits_for_children(1, true)},
        {11, reads(10, {"pipe:[3]"}, true)},
        {12, answers({"pipe:[3]"}, with(11))}},
       Whom::OwnChild,
       10,
       12},
      {"a shell stands for its program, which waits for another rank",
       {{10, waits_for_children(1)}, {11, receives(10)}},
       Whom::Others,
       11},
      {"a shell in a shell, and a lock",
       {{10, waits_for_children(1)}, {11, waits_for_children(10)}, {12, with(11, true)}},
       Whom::Unknown,
       12},
      {"a program whose output goes to another one",
       {{10, waits_for_children(1)},
        {11, locked_beside_receiver(10)},
        {12, reads(10, {"pipe:[1]"})}},
       Whom::Others,
       11},
      {"a program below a shell that waits for its own child",
       {{10, waits_for_children(1)},
        {11, reads(10, {"pipe:[1]"}, true)},
        {12, answers({"pipe:[1]"}, with(11))}},
       Whom::OwnChild,
       11,
       12},
      {"nothing is known of it", {}, Whom::Unknown},
  };
  for (const Case& each : cases) {
    const Awaited found = whom_it_awaits(10, each.processes);
    EXPECT_EQ(found, (Awaited{each.whom, each.program, each.child})) << each.what;
  }
}

// The pair of sockets by which an event loop wakes itself up; a forked helper has both of its ends.
TEST(AwaitedProcessTest, WhoWakesItselfUpWaitsForNoChild) {
  const Processes processes{{10, answers({"socket:[7]"}, reads(1, {"socket:[7]"}))},
                            {11, answers({"socket:[7]"}, with(10))}};
  EXPECT_EQ(whom_it_awaits(10, processes).whom, Whom::Unknown);
}

// All of a pipeline have inherited the end by which its pipe is written, so each seems to wait for
// all below it.
TEST(AwaitedProcessTest, ALongChainOfWhichEachAwaitsAllTakesNoTime) {
  constexpr pid_t kMany = 250;
  Processes processes;
  for (pid_t pid = 10; pid < 10 + kMany; ++pid)
    processes[pid] = answers({"pipe:[1]"}, reads(pid - 1, {"pipe:[1]"}));
  processes[10 + kMany] = answers({"pipe:[1]"}, with(9 + kMany));
  EXPECT_EQ(whom_it_awaits(10, processes), (Awaited{Whom::OwnChild, 10, 10 + kMany}));
}

// As processes that end and begin while they are read may make it seem.
TEST(AwaitedProcessTest, ACircleEnds) {
  Processes circle = {{10, waits_for_children(11)}, {11, waits_for_children(10)}};
  (void)whom_it_awaits(10, circle);
  for (auto& [pid, process] : circle)
    process.connected = true;
  (void)whom_it_awaits(10, circle);
}

}  // namespace
}  // namespace drun::hang
