// --events and --on-event: what they mean, and which are refused with which words.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using events::Kind;
using testing::HasSubstr;
using testing::StartsWith;

EventChoices choices(const std::vector<std::string>& arguments) {
  cli::CommandLine line = cli::parse_command_line(drun_program(false), arguments);
  const Host machine = test::made_up_machine();
  return build_options({line.flags, line.words, {}, machine, false}).events;
}

std::string error_of(const std::string& flag, const std::string& value) {
  try {
    (void)choices({flag, value, "./program"});
  } catch (const cli::UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(BuildEventsTest, NothingIsToldUnlessItIsAskedFor) {
  EXPECT_EQ(choices({"./program"}), EventChoices());
}

TEST(BuildEventsTest, AFileADescriptorOrACommandGetsTheLines) {
  const auto file = choices({"--events", "${hostname}.jsonl", "./program"}).target;
  ASSERT_TRUE(file);
  EXPECT_EQ(*file, (EventTarget{EventTarget::Kind::File, "${hostname}.jsonl", -1}));
  EXPECT_EQ(*choices({"--events", "fd:2", "./program"}).target,
            (EventTarget{EventTarget::Kind::Descriptor, "", 2}));
  EXPECT_EQ(*choices({"--events", "exec:jq -c . >x", "./program"}).target,
            (EventTarget{EventTarget::Kind::Command, "jq -c . >x", -1}));
}

TEST(BuildEventsTest, EachHookHasItsEventsAndItsCommand) {
  const auto hooks = choices({"--on-event", "restart,failure:mail a:b, c", "--on-event",
                              "end,lost:./tell", "./program"})
                         .hooks;
  ASSERT_EQ(hooks.size(), 2U);
  EXPECT_EQ(hooks[0].command, "mail a:b, c");
  EXPECT_TRUE(hooks[0].wants(Kind::Restart));
  EXPECT_TRUE(hooks[0].wants(Kind::Failure));
  EXPECT_FALSE(hooks[0].wants(Kind::NodeGone));
  EXPECT_FALSE(hooks[0].at_end);
  EXPECT_TRUE(hooks[1].at_end);
  EXPECT_TRUE(hooks[1].wants(Kind::NodeGone));
  EXPECT_FALSE(hooks[1].wants(Kind::Outcome));
  for (const auto& info : events::every_kind())
    EXPECT_TRUE(choices({"--on-event", "all:./tell", "./program"}).hooks.at(0).wants(info.kind));
}

TEST(BuildEventsTest, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(error_of("--events", "events-${hostnam}.jsonl"),
              HasSubstr("nothing is called ${hostnam}; there are ${hostname} and ${run_id}"));
  EXPECT_THAT(error_of("--events", "fd:x"), HasSubstr("expected fd:N"));
  EXPECT_THAT(error_of("--events", "fd:98765"), HasSubstr("no such descriptor is open"));
  EXPECT_THAT(error_of("--events", "exec:"), HasSubstr("expected a command behind exec:"));
  EXPECT_THAT(error_of("--events", ""), HasSubstr("expected FILE, fd:N or exec:COMMAND"));
  for (const char* value : {"", "restart", "restart:", ":./tell"})
    EXPECT_THAT(error_of("--on-event", value), HasSubstr("expected NAMES:COMMAND")) << value;
  EXPECT_THAT(error_of("--on-event", "restrat:./tell"), HasSubstr("did you mean restart?"));
  try {
    (void)choices({"--on-event", "end:./tell", "--on-event", "restrat:./tell", "./program"});
    FAIL();
  } catch (const cli::UsageError& error) {
    EXPECT_THAT(error.what(), StartsWith("--on-event 'restrat:./tell': "));
  }
}

}  // namespace
}  // namespace drun::launcher
