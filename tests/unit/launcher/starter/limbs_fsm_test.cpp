#include "launcher/starter/limbs_fsm.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/version.hpp"
#include "support/state_table.hpp"

namespace drun::launcher {
namespace {

using hosts::Frame;
using hosts::FrameType;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

hosts::Branch branch_of(std::size_t hosts, std::size_t fan_out) {
  hosts::Branch branch;
  branch.launcher = {"ssh"};
  branch.drun = "/bin/drun";
  branch.fan_out = fan_out;
  branch.copy_self = true;
  for (std::uint32_t host = 1; host <= hosts; ++host)
    branch.targets.push_back({host, "node" + std::to_string(host)});
  return branch;
}

std::string hello(const char* version) {
  return pack(hosts::Hello{version, "", "", "", ""});
}

std::string text(const Frame& frame) {
  const std::string host = std::to_string(frame.host);
  switch (frame.type) {
    case FrameType::Hello:
      return "hello of " + host;
    case FrameType::Failed:
      return host + " failed: " + frame.payload.substr(0, frame.payload.find_first_of(",;"));
    case FrameType::Ended:
      return host + " ended";
    case FrameType::Copying:
      return "copying to " + host;
    case FrameType::Branch: {
      std::string names;
      const auto branch = hosts::unpack_branch(frame.payload);
      for (const auto& target : branch->targets)
        names += " " + target.name;
      return host + " shall start" + (names.empty() ? " none" : names);
    }
    default:
      return "a frame of " + host;
  }
}

// The host that a command starts drun on.
std::string host_in(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (word.starts_with("node")) return word;
  return "?";
}

std::string text(const LimbsFsm::Action& action) {
  struct {
    std::string operator()(const LimbsFsm::StartAction& a) { return "start " + host_in(a.command); }
    std::string operator()(const LimbsFsm::SendAction& a) {
      return "send #" + std::to_string(a.limb) + ": " + text(a.frame);
    }
    std::string operator()(const LimbsFsm::SendSelfAction& a) {
      return "copy to #" + std::to_string(a.limb);
    }
    std::string operator()(const LimbsFsm::CloseAction& a) {
      return "close #" + std::to_string(a.limb);
    }
    std::string operator()(const LimbsFsm::KillAction& a) {
      return "kill #" + std::to_string(a.limb);
    }
    std::string operator()(const LimbsFsm::TellAction& a) { return "tell: " + text(a.frame); }
    std::string operator()(const LimbsFsm::IdleAction& /*a*/) { return "idle"; }
  } in_words;
  return std::visit(in_words, action);
}

std::vector<std::string> all_actions(LimbsFsm& fsm) {
  std::vector<std::string> result;
  while (const auto action = fsm.next())
    result.push_back(text(*action));
  return result;
}

// Host 1, which is to start host 2, and a third that runs, so that nobody is idle.
class OneLimb {
 public:
  OneLimb() { fsm.start(branch_of(3, 2), "", {"drun-1", 100}); }

  LimbsFsm fsm;

  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Reached", "Copying", "Greeted", "Over"};
    return kNames[static_cast<int>(fsm.state(0))];
  }
  std::string news() {
    std::string did;
    for (const std::string& action : all_actions(fsm))
      did += ", " + action;
    return news_(state(), did);
  }

 private:
  test::News news_;
};

EdgeEnding exit_of(int code) {
  EdgeEnding ending;
  ending.code = code;
  ending.stderr_end = "no route";
  return ending;
}

const test::TableEvents<OneLimb> kEvents = {
    {"hello",
     [](OneLimb& m) {
       m.fsm.on_frame(0, {FrameType::Hello, 0, hello(DRUN_VERSION_STRING)});
     }},
    {"hello of another version",
     [](OneLimb& m) {
       m.fsm.on_frame(0, {FrameType::Hello, 0, hello("0.0.1")});
     }},
    {"its end",
     [](OneLimb& m) {
       m.fsm.on_frame(0, {FrameType::Ended, 1, "0"});
     }},
    {"the end of 2",
     [](OneLimb& m) {
       m.fsm.on_frame(0, {FrameType::Ended, 2, "0"});
     }},
    {"wants a copy", [](OneLimb& m) { m.fsm.on_copy_wanted(0, "Linux x86_64", "Linux x86_64"); }},
    {"of another machine",
     [](OneLimb& m) { m.fsm.on_copy_wanted(0, "Linux arm", "Linux x86_64"); }},
    {"exit", [](OneLimb& m) { m.fsm.on_ended(0, exit_of(255)); }},
    {"send",
     [](OneLimb& m) {
       m.fsm.send({FrameType::Signal, 2, "15"});
     }},
    {"give up", [](OneLimb& m) { m.fsm.give_up(1); }},
    {"give 2 up", [](OneLimb& m) { m.fsm.give_up(2); }},
    {"close", [](OneLimb& m) { m.fsm.close(); }},
    {"kill", [](OneLimb& m) { m.fsm.kill(); }}};

const std::vector<test::StateRow> kTable = {
    {"Reached", {}, R"(
  hello -> Greeted, send #0: 1 shall start node2, tell: hello of 1
  hello of another version -> Over, kill #0, tell: 1 failed: the drun there is another version,
      start node2
  its end; the end of 2 -> Over, kill #0, tell: 1 failed: what answers there is no drun, start
      node2
  wants a copy -> Copying, copy to #0, tell: copying to 1
  of another machine -> Over, close #0, tell: 1 failed: it is another kind of machine, start
      node2
  exit -> Over, tell: 1 failed: ssh failed (no route), start node2
  give up -> Reached, kill #0
  close; kill -> Reached, kill #0, kill #1
  send; give 2 up -> nothing
)"},
    {"Copying", {"wants a copy"}, R"(
  hello -> Greeted, send #0: 1 shall start node2, tell: hello of 1
  hello of another version -> Over, close #0, tell: 1 failed: the drun there is another version,
      start node2
  its end; the end of 2 -> Over, close #0, tell: 1 failed: what answers there is no drun, start
      node2
  exit -> Over, tell: 1 failed: ssh failed (no route), start node2
  give up -> Copying, kill #0
  close; kill -> Copying, kill #0, kill #1
  wants a copy; of another machine; send; give 2 up -> nothing
)"},
    {"Greeted", {"hello"}, R"(
  its end -> Greeted, tell: 1 ended
  the end of 2 -> Greeted, tell: 2 ended
  exit -> Over, tell: 1 failed: lost: ssh ended with exit code 255 (no route), tell: 2 failed:
      lost with node1
  send -> Greeted, send #0: a frame of 2
  close -> Greeted, close #0, kill #1
  kill -> Greeted, kill #0, kill #1
  hello; hello of another version; wants a copy; of another machine; give up; give 2 up ->
      nothing
)"},
    {"Greeted, its own end is told", {"hello", "its end"}, R"(
  the end of 2 -> Greeted, tell: 2 ended, close #0
  exit -> Over, tell: 2 failed: lost with node1
  send -> Greeted, send #0: a frame of 2
  give 2 up -> Greeted, close #0
  close -> Greeted, close #0, kill #1
  kill -> Greeted, kill #0, kill #1
  hello; hello of another version; its end; wants a copy; of another machine; give up -> nothing
)"},
    {"Over", {"exit"}, R"(
  give 2 up -> Over, kill #2
  close; kill -> Over, kill #1, kill #2
  hello; hello of another version; its end; the end of 2; wants a copy; of another machine;
      exit; send; give up -> nothing
)"},
    {"Over, rejected", {"hello of another version"}, R"(
  give 2 up -> Over, kill #2
  close; kill -> Over, kill #1, kill #2
  hello; hello of another version; its end; the end of 2; wants a copy; of another machine;
      exit; send; give up -> nothing
)"},
    {"Over, closed", {"hello", "close", "exit"}, R"(
  exit -> Over, idle
  close; kill -> Over, kill #1
  hello; hello of another version; its end; the end of 2; wants a copy; of another machine;
      send; give up; give 2 up -> nothing
)"}};

TEST(LimbsFsmTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Reached", "Copying", "Greeted", "Over"});
}

TEST(LimbsFsmTest, StartsTheFirstOfEachBranch) {
  LimbsFsm fsm;
  fsm.start(branch_of(5, 2), "", {});
  EXPECT_THAT(all_actions(fsm), ElementsAre("start node1", "start node4"));
  EXPECT_FALSE(fsm.idle());
}

TEST(LimbsFsmTest, WhatCannotBeStartedFailsAndItsRestIsStartedFromHere) {
  LimbsFsm fsm;
  fsm.start(branch_of(2, 1), "node0", {});
  EXPECT_THAT(all_actions(fsm), ElementsAre("start node1"));
  fsm.on_not_started(0, "no ssh");
  EXPECT_THAT(all_actions(fsm), ElementsAre("tell: 1 failed: no ssh (from node0)", "start node2"));
  fsm.on_not_started(1, "no ssh");
  EXPECT_THAT(all_actions(fsm), ElementsAre("tell: 2 failed: no ssh (from node0)"));
  EXPECT_TRUE(fsm.idle());
}

TEST(LimbsFsmTest, WithoutAnOfferNoCopyIsSent) {
  LimbsFsm fsm;
  fsm.start(branch_of(1, 1), "", {});
  (void)all_actions(fsm);
  fsm.on_copy_wanted(0, "Linux x86_64", "Linux x86_64");
  EXPECT_THAT(all_actions(fsm), IsEmpty());
  EXPECT_EQ(fsm.state(0), LimbsFsm::State::Reached);
}

TEST(LimbsFsmTest, TheLastEndIsToldOnce) {
  LimbsFsm fsm;
  fsm.start(branch_of(2, 2), "", {});
  (void)all_actions(fsm);
  fsm.on_ended(0, exit_of(255));
  EXPECT_FALSE(fsm.idle());
  EXPECT_THAT(all_actions(fsm), ElementsAre(testing::StartsWith("tell: 1 failed")));
  fsm.on_ended(1, exit_of(255));
  EXPECT_THAT(all_actions(fsm), ElementsAre(testing::StartsWith("tell: 2 failed"), "idle"));
  EXPECT_THAT(all_actions(fsm), IsEmpty());
}

// Whoever hears of a failure may end it all from inside.
TEST(LimbsFsmTest, WhatWasNotBegunBeforeACloseNeverIs) {
  LimbsFsm fsm;
  fsm.start(branch_of(2, 1), "", {});
  (void)all_actions(fsm);
  fsm.on_ended(0, exit_of(255));
  const auto first = fsm.next();
  ASSERT_TRUE(first);
  EXPECT_THAT(text(*first), testing::StartsWith("tell: 1 failed"));
  fsm.close();
  EXPECT_TRUE(fsm.idle());
  EXPECT_THAT(all_actions(fsm), ElementsAre("idle"));
  fsm.start_again({1, "node1"});
  EXPECT_THAT(all_actions(fsm), IsEmpty());
}

TEST(LimbsFsmTest, AHostIsTriedAgainAsALimbOfItsOwn) {
  LimbsFsm fsm;
  fsm.start(branch_of(1, 1), "", {});
  (void)all_actions(fsm);
  fsm.on_ended(0, exit_of(255));
  fsm.start_again({1, "node1"});
  EXPECT_THAT(all_actions(fsm), ElementsAre(testing::StartsWith("tell: 1 failed"), "start node1"))
      << "nobody is idle";
  fsm.on_frame(1, {FrameType::Hello, 0, hello(DRUN_VERSION_STRING)});
  fsm.send({FrameType::Signal, 1, "15"});
  EXPECT_THAT(all_actions(fsm), ElementsAre("send #1: 1 shall start none", "tell: hello of 1",
                                            "send #1: a frame of 1"));
}

// Of the job's token there are as few copies as can be.
TEST(LimbsFsmTest, WhatIsSentIsNotCopied) {
  LimbsFsm fsm;
  fsm.start(branch_of(1, 1), "", {});
  fsm.on_frame(0, {FrameType::Hello, 0, hello(DRUN_VERSION_STRING)});
  (void)all_actions(fsm);
  Frame order{FrameType::Order, 1, std::string(100, 'x')};
  const char* const bytes = order.payload.data();
  fsm.send(std::move(order));
  const auto action = fsm.next();
  const auto* const sent = action ? std::get_if<LimbsFsm::SendAction>(&*action) : nullptr;
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(sent->frame.payload.data(), bytes);
}

}  // namespace
}  // namespace drun::launcher
