#include "launcher/watch/leftovers_fsm.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Fsm = LeftoversFsm;
using Files = Fsm::Files;
using Gpus = Fsm::Gpus;
using Seen = Fsm::Seen;
using Step = Fsm::Step;
using Steps = Fsm::Steps;
using Work = Fsm::Work;

const Fsm::Time kStart{std::chrono::hours(1)};
const std::vector<pid_t> kWorkers{101, 102};

// ---- files: every state, every event that can come in it ----

enum class State {
  Ignored,
  Unnoted,
  Noting,
  Idle,
  IdleKnowing,  // files that are the workers'
  Looking,
  LookingFirst,
  Sweeping,
  LastSweep  // the look before it hangs
};
constexpr std::size_t kStates = static_cast<std::size_t>(State::LastSweep) + 1;

enum class Event {
  Round,
  Started,
  Doomed,
  GoneWell,
  GoneBadly,
  Time,
  Noted,
  NotNoted,
  FoundNone,
  FoundOne,
  LookHung,
  Swept,
  SweepHung
};
constexpr std::size_t kEvents = static_cast<std::size_t>(Event::SweepHung) + 1;

Steps send(Fsm& fsm, Event event) {
  switch (event) {
    case Event::Round:
      return fsm.on_round();
    case Event::Started:
      fsm.on_started(kStart);
      break;
    case Event::Doomed:
      return fsm.on_doomed();
    case Event::GoneWell:
      return fsm.on_gone(kWorkers, true);
    case Event::GoneBadly:
      return fsm.on_gone(kWorkers, false);
    case Event::Time:
      return fsm.on_time(kStart);
    case Event::Noted:
      fsm.on_noted(true);
      break;
    case Event::NotNoted:
      fsm.on_noted(false);
      break;
    case Event::FoundNone:
      fsm.on_looked(Seen{0, {}}, kStart);
      break;
    case Event::FoundOne:
      fsm.on_looked(Seen{1, {}}, kStart);
      break;
    case Event::LookHung:
      fsm.on_looked(std::nullopt, kStart);
      break;
    case Event::Swept:
      return fsm.on_swept(true);
    case Event::SweepHung:
      return fsm.on_swept(false);
  }
  return {};
}

// Only what was asked for is answered.
bool can_come(State state, Event event) {
  switch (event) {
    case Event::Noted:
    case Event::NotNoted:
      return state == State::Noting;
    case Event::FoundNone:
    case Event::FoundOne:
    case Event::LookHung:
      return state == State::Looking || state == State::LookingFirst;
    case Event::Swept:
    case Event::SweepHung:
      return state == State::Sweeping || state == State::LastSweep;
    default:
      return true;
  }
}

Fsm machine_in(State state) {
  Fsm fsm(state == State::Ignored, false);
  const auto after = [&fsm](std::initializer_list<Event> events) {
    for (const Event event : events)
      (void)send(fsm, event);
  };
  using enum Event;
  switch (state) {
    case State::Ignored:
    case State::Unnoted:
      break;
    case State::Noting:
      after({Round});
      break;
    case State::Idle:
      after({Round, Noted});
      break;
    case State::IdleKnowing:
      after({Round, Noted, Doomed, FoundOne});
      break;
    case State::Looking:
      after({Round, Noted, Doomed});
      break;
    case State::LookingFirst:
      after({Round, Noted, Doomed, GoneBadly});
      break;
    case State::Sweeping:
      after({Round, Noted, Doomed, FoundOne, GoneBadly});
      break;
    case State::LastSweep:
      after({Round, Noted, Doomed, GoneBadly, LookHung});
  }
  return fsm;
}

std::pair<Files, Work> shown(State state) {
  switch (state) {
    case State::Ignored:
      return {Files::Ignored, Work::None};
    case State::Unnoted:
      return {Files::Unnoted, Work::None};
    case State::Noting:
      return {Files::Noting, Work::None};
    case State::Idle:
    case State::IdleKnowing:
      return {Files::Noted, Work::None};
    case State::Looking:
      return {Files::Noted, Work::Looking};
    case State::LookingFirst:
      return {Files::Noted, Work::LookingFirst};
    case State::Sweeping:
      return {Files::Noted, Work::Sweeping};
    case State::LastSweep:
      break;
  }
  return {Files::Ignored, Work::Sweeping};
}

struct Next {
  State state;
  Steps steps;
};

// What is not here changes nothing.
const std::map<std::pair<State, Event>, Next> kTable = {
    {{State::Unnoted, Event::Round}, {State::Noting, {Step::NoteFiles}}},
    {{State::Noting, Event::Noted}, {State::Idle, {}}},
    {{State::Noting, Event::NotNoted}, {State::Ignored, {}}},
    {{State::Idle, Event::Doomed}, {State::Looking, {Step::Look}}},
    {{State::Idle, Event::Time}, {State::Looking, {Step::Look}}},
    {{State::IdleKnowing, Event::Doomed}, {State::Looking, {Step::Look}}},
    {{State::IdleKnowing, Event::Time}, {State::Looking, {Step::Look}}},
    {{State::IdleKnowing, Event::GoneBadly}, {State::Sweeping, {Step::Sweep}}},
    {{State::Looking, Event::GoneBadly}, {State::LookingFirst, {Step::Sweep}}},
    {{State::Looking, Event::FoundNone}, {State::Idle, {}}},
    {{State::Looking, Event::FoundOne}, {State::IdleKnowing, {}}},
    {{State::Looking, Event::LookHung}, {State::Ignored, {}}},
    {{State::LookingFirst, Event::FoundNone}, {State::Sweeping, {}}},
    {{State::LookingFirst, Event::FoundOne}, {State::Sweeping, {}}},
    {{State::LookingFirst, Event::LookHung}, {State::LastSweep, {}}},
    {{State::Sweeping, Event::Swept}, {State::IdleKnowing, {Step::GoOn}}},
    {{State::Sweeping, Event::SweepHung}, {State::Ignored, {Step::GoOn}}},
    {{State::LastSweep, Event::Swept}, {State::Ignored, {Step::GoOn}}},
    {{State::LastSweep, Event::SweepHung}, {State::Ignored, {Step::GoOn}}},
};

TEST(LeftoversFsmTest, EveryEventInEveryState) {
  for (std::size_t s = 0; s < kStates; ++s) {
    for (std::size_t e = 0; e < kEvents; ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<Event>(e);
      if (!can_come(state, event)) continue;
      const auto row = kTable.find({state, event});
      const Next expected = row == kTable.end() ? Next{state, {}} : row->second;
      SCOPED_TRACE("state " + std::to_string(s) + ", event " + std::to_string(e));
      Fsm fsm = machine_in(state);
      ASSERT_EQ(std::pair(fsm.files(), fsm.work()), shown(state));
      EXPECT_EQ(send(fsm, event), expected.steps);
      EXPECT_EQ(std::pair(fsm.files(), fsm.work()), shown(expected.state));
    }
  }
}

TEST(LeftoversFsmTest, WithoutAFileThatIsTheirsNothingIsSwept) {
  Fsm knows = machine_in(State::IdleKnowing);
  EXPECT_THAT(knows.on_doomed(), ElementsAre(Step::Look));
  knows.on_looked(Seen{0, {}}, kStart);
  EXPECT_THAT(knows.on_gone(kWorkers, false), IsEmpty()) << "they have removed it themselves";
}

TEST(LeftoversFsmTest, LooksAreFewerAndFewerWhileTheWorkersRun) {
  Fsm fsm = machine_in(State::Idle);
  EXPECT_EQ(fsm.next_look(), std::nullopt);
  for (int round = 0; round < 2; ++round) {
    Fsm::Time now = kStart;
    fsm.on_started(now);
    for (const int pause :
         {100, 200, 400, 800, 1'600, 3'200, 6'400, 12'800, 25'600, 51'200, 60'000, 60'000}) {
      EXPECT_EQ(fsm.next_look(), now + milliseconds(pause));
      now += milliseconds(pause);
      EXPECT_THAT(fsm.on_time(now), ElementsAre(Step::Look));
      EXPECT_EQ(fsm.next_look(), std::nullopt) << "not before this one is over";
      now += seconds(1);
      fsm.on_looked(Seen{}, now);
    }
    (void)fsm.on_gone(kWorkers, true);
    EXPECT_EQ(fsm.next_look(), std::nullopt);
  }
}

TEST(LeftoversFsmTest, ALookThatIsOverAfterTheWorkersIsTheLast) {
  Fsm fsm = machine_in(State::Idle);
  fsm.on_started(kStart);
  (void)fsm.on_doomed();
  (void)fsm.on_gone(kWorkers, true);
  fsm.on_looked(Seen{1, {}}, kStart);
  EXPECT_EQ(fsm.next_look(), std::nullopt);
}

TEST(LeftoversFsmTest, ASweepOfTheLastRoundKeepsNobodyFromLookingLater) {
  Fsm fsm = machine_in(State::Sweeping);
  fsm.on_started(kStart);
  ASSERT_EQ(fsm.next_look(), kStart + milliseconds(100));
  EXPECT_THAT(fsm.on_time(*fsm.next_look()), IsEmpty()) << "it takes longer";
  EXPECT_EQ(fsm.next_look(), kStart + milliseconds(300));
  (void)fsm.on_swept(true);
  EXPECT_THAT(fsm.on_time(*fsm.next_look()), ElementsAre(Step::Look));
}

TEST(LeftoversFsmTest, ALookThatHangsKeepsNobodyFromAskingTheDriver) {
  Fsm fsm(false, true);
  (void)fsm.on_round();
  fsm.on_noted(true);
  fsm.on_started(kStart);
  ASSERT_THAT(fsm.on_time(*fsm.next_look()), ElementsAre(Step::Look));
  fsm.on_looked(std::nullopt, kStart + seconds(1));
  ASSERT_EQ(fsm.next_look(), kStart + Fsm::kGpuQuestion);
  EXPECT_THAT(fsm.on_time(*fsm.next_look()), ElementsAre(Step::AskAboutGpus));
  EXPECT_EQ(fsm.next_look(), std::nullopt);
}

// ---- GPUs ----

Fsm with_gpus(bool files = false) {
  Fsm fsm(!files, true);
  (void)fsm.on_round();
  if (files) fsm.on_noted(true);
  fsm.on_started(kStart);
  (void)fsm.on_time(kStart + Fsm::kGpuQuestion);
  if (files) fsm.on_looked(Seen{1, {}}, kStart);
  fsm.on_gpus_known(true);
  return fsm;
}

TEST(LeftoversFsmTest, WhetherTheDriverTellsIsAskedOnceWhileWorkersRun) {
  Fsm fsm(true, true);
  EXPECT_THAT(fsm.on_round(), IsEmpty()) << "they are not to wait for it";
  fsm.on_started(kStart);
  EXPECT_FALSE(fsm.wants_processes());
  EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), ElementsAre(Step::AskAboutGpus));
  EXPECT_EQ(fsm.gpus(), Gpus::Asked);
  EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), IsEmpty());
  fsm.on_gpus_known(true);
  EXPECT_EQ(fsm.gpus(), Gpus::Useful);
  EXPECT_TRUE(fsm.wants_processes());
  EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), IsEmpty());
}

// Nobody looks at files, so this is all that there is to look for.
TEST(LeftoversFsmTest, TheDriverIsNotAskedBeforeTheWorkersHadTimeToUseIt) {
  for (const bool keeps_files : {true, false}) {
    Fsm fsm(keeps_files, true);
    (void)fsm.on_round();
    if (!keeps_files) fsm.on_noted(true);
    fsm.on_started(kStart);
    Fsm::Time now = kStart;
    for (int looks = 0; fsm.gpus() == Gpus::Unknown; ++looks) {
      ASSERT_LT(looks, 10);
      ASSERT_TRUE(fsm.next_look());
      now = *fsm.next_look();
      (void)fsm.on_time(now);
      if (fsm.work() == Work::Looking) fsm.on_looked(Seen{}, now);
    }
    EXPECT_GE(now, kStart + seconds(2));
    EXPECT_LE(now, kStart + seconds(4));
  }
}

TEST(LeftoversFsmTest, AJobWithoutASecondRoundDoesNotAsk) {
  Fsm fsm(true, false);
  fsm.on_started(kStart);
  EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), IsEmpty());
  EXPECT_EQ(fsm.gpus(), Gpus::Useless);
}

TEST(LeftoversFsmTest, TheQuestionComesBeforeTheLook) {
  Fsm fsm(false, true);
  (void)fsm.on_round();
  fsm.on_noted(true);
  EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), ElementsAre(Step::AskAboutGpus, Step::Look));
}

TEST(LeftoversFsmTest, TheNextRoundWaitsForProcessesOfTheLast) {
  Fsm fsm = with_gpus(true);
  (void)fsm.on_doomed();
  fsm.on_looked(Seen{0, {150, 101}}, kStart);
  (void)fsm.on_gone(kWorkers, false);
  EXPECT_THAT(fsm.on_round(), ElementsAre(Step::AwaitGpus));
  EXPECT_THAT(fsm.take_gone(), ElementsAre(101, 102, 150)) << "and what they had started";
  EXPECT_THAT(fsm.take_gone(), IsEmpty());
  EXPECT_EQ(fsm.held_until(kStart), kStart + seconds(15));
  EXPECT_TRUE(fsm.wants_processes()) << "should the round begin without the answer";
  EXPECT_THAT(fsm.on_round(), IsEmpty()) << "it is asked already";
  EXPECT_THAT(fsm.on_gpus_awaited(true), ElementsAre(Step::GoOn));
  EXPECT_EQ(fsm.held_until(kStart), std::nullopt);
  EXPECT_EQ(fsm.gpus(), Gpus::Useful);
}

TEST(LeftoversFsmTest, ProcessesOfTheRoundBeforeAreForgotten) {
  Fsm fsm = with_gpus();
  (void)fsm.on_gone(kWorkers, false);
  fsm.on_started(kStart);
  (void)fsm.on_gone({103}, true);
  EXPECT_THAT(fsm.on_round(), ElementsAre(Step::AwaitGpus));
  EXPECT_THAT(fsm.take_gone(), ElementsAre(103));
}

TEST(LeftoversFsmTest, ARoundThatStartedNothingIsNotWaitedFor) {
  Fsm fsm = with_gpus();
  (void)fsm.on_gone({}, false);
  EXPECT_THAT(fsm.on_round(), IsEmpty());
  EXPECT_EQ(fsm.held_until(kStart), std::nullopt);
}

TEST(LeftoversFsmTest, ADriverThatTellsNoMoreIsNotWaitedForAgain) {
  for (const bool at_once : {true, false}) {
    Fsm fsm = with_gpus();
    (void)fsm.on_gone(kWorkers, false);
    if (at_once) {
      fsm.on_gpus_known(false);
    } else {
      (void)fsm.on_round();
      EXPECT_THAT(fsm.on_gpus_awaited(false), ElementsAre(Step::GoOn));
      fsm.on_started(kStart);
      (void)fsm.on_gone(kWorkers, false);
    }
    EXPECT_EQ(fsm.gpus(), Gpus::Useless);
    EXPECT_THAT(fsm.on_round(), IsEmpty());
    EXPECT_FALSE(fsm.wants_processes());
    EXPECT_THAT(fsm.on_time(kStart + Fsm::kGpuQuestion), IsEmpty()) << "it is not asked again";
  }
}

// ---- what the next round waits for ----

TEST(LeftoversFsmTest, ASweepIsWaitedForOnlyIfItMayFindSomething) {
  Fsm known = machine_in(State::Sweeping);
  EXPECT_THAT(known.on_round(), IsEmpty());
  EXPECT_EQ(known.held_until(kStart), kStart + seconds(1));
  EXPECT_EQ(machine_in(State::LookingFirst).held_until(kStart), std::nullopt);
  EXPECT_EQ(machine_in(State::IdleKnowing).held_until(kStart), std::nullopt);
  EXPECT_THAT(known.on_swept(true), ElementsAre(Step::GoOn));
  EXPECT_EQ(known.held_until(kStart), std::nullopt);
}

TEST(LeftoversFsmTest, TheRoundGoesOnWhenBothAreOver) {
  for (const bool sweep_first : {true, false}) {
    Fsm fsm = with_gpus(true);
    EXPECT_THAT(fsm.on_gone(kWorkers, false), ElementsAre(Step::Sweep));
    EXPECT_TRUE(fsm.sweep_ends_soon());
    EXPECT_THAT(fsm.on_round(), ElementsAre(Step::AwaitGpus));
    EXPECT_EQ(fsm.held_until(kStart), kStart + seconds(15));
    EXPECT_FALSE(fsm.sweep_ends_soon()) << "the end of drun would wait for the GPUs, too";
    if (sweep_first) {
      EXPECT_THAT(fsm.on_swept(true), IsEmpty());
      EXPECT_THAT(fsm.on_gpus_awaited(true), ElementsAre(Step::GoOn));
    } else {
      EXPECT_THAT(fsm.on_gpus_awaited(true), IsEmpty());
      EXPECT_TRUE(fsm.sweep_ends_soon());
      EXPECT_THAT(fsm.on_swept(true), ElementsAre(Step::GoOn));
    }
    EXPECT_FALSE(fsm.sweep_ends_soon());
  }
}

}  // namespace
}  // namespace drun::launcher
