#include "launcher/leaving/early_end.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/events/event.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using events::Kind;
using testing::ElementsAre;

std::vector<events::Event> events_in(const std::string& path) {
  std::vector<events::Event> result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    result.push_back(events::parse_event(line).value());
  return result;
}

TEST(EarlyEndTest, AJobThatHasNoAgentYetHasABeginningAndAnEnd) {
  const drun::test::TemporaryDirectory folder;
  Options options;
  options.run_id = "train";
  options.events.target = EventTarget{EventTarget::Kind::File, folder.file("events")};
  tell_early_end(options, 127, "no such program");
  const auto events = events_in(folder.file("events"));
  std::vector<Kind> kinds;
  for (const auto& event : events)
    kinds.push_back(event.kind);
  ASSERT_THAT(kinds, ElementsAre(Kind::AgentStarted, Kind::Outcome, Kind::AgentEnded));
  EXPECT_EQ(events[1].exit_code, 127);
  EXPECT_EQ(events[1].raw_error, "no such program");
  EXPECT_EQ(events[1].state, "FAILED");
  EXPECT_EQ(events[2].exit_code, 127);
}

TEST(EarlyEndTest, AHookOfTheEndRunsAndIsWaitedFor) {
  const drun::test::TemporaryDirectory folder;
  Options options;
  EventHook hook;
  hook.at_end = true;
  hook.command = "echo $DRUN_EVENT >" + folder.file("told");
  options.events.hooks.push_back(hook);
  tell_early_end(options, 2, "no such flag");
  std::ifstream file(folder.file("told"));
  std::string word;
  file >> word;
  EXPECT_EQ(word, "outcome");
}

TEST(EarlyEndTest, WithoutEitherNothingIsWrittenOrRun) {
  const drun::test::TemporaryDirectory folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.file(""));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  tell_early_end(Options(), 2, "no such flag");
  std::filesystem::current_path(before);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

}  // namespace
}  // namespace drun::launcher
