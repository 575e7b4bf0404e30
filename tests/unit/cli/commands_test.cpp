// The grammar of a program with commands, whose flags may stand anywhere.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/answer.hpp"
#include "cli/parse.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr auto kOwn = Origin::Own;
constexpr std::array kGetFlags{Flag{"wait", 0, "", "", kOwn, "Flags", "", "until it is there"}};
constexpr std::array kCommands{Command{"get", "KEY", "reads", kGetFlags},
                               Command{"set", "KEY VALUE", "writes", {}}};
constexpr std::array kFlags{Flag{"endpoint", 'e', "E", "", kOwn, "Flags", "", "host:port"},
                            Flag{"raw", 0, "", "", kOwn, "Flags", "", "keys as they are"},
                            help_flag("Flags"),
                            version_flag("Flags"),
                            completion_flag("Flags"),
                            manual_flag("Flags")};
constexpr std::array<Variable, 2> kVariables{
    {{"endpoint", "STORE", "", ""}, {"endpoint", "LOCAL_STORE", "1", "localhost"}}};
constexpr Program kProgram{.name = "tool",
                           .purpose = "a tool",
                           .usage = "tool [flags] COMMAND\n",
                           .about = "About it.\n",
                           .notes = "Notes.\n",
                           .flags = kFlags,
                           .commands = kCommands,
                           .variables = kVariables};

std::string error_of(const Words& arguments) {
  try {
    (void)parse_command_line(kProgram, arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(CommandsTest, FlagsMayStandAnywhereAndThoseOfACommandBehindIt) {
  for (const Words& words :
       {Words{"get", "k", "--wait", "--raw"}, Words{"--raw", "get", "--wait", "k"}}) {
    const CommandLine line = parse_command_line(kProgram, words);
    EXPECT_EQ(line.command, &kCommands[0]);
    EXPECT_TRUE(line.flags.on("wait"));
    EXPECT_TRUE(line.flags.on("raw"));
    EXPECT_THAT(line.words, ElementsAre("k"));
  }
  EXPECT_EQ(error_of({"--wait", "get", "k"}), "unknown flag '--wait' (tool --help lists them)");
  EXPECT_EQ(error_of({"set", "k", "--wait"}), "unknown flag '--wait' (tool --help lists them)");
  EXPECT_EQ(error_of({"get", "--wiat"}),
            "unknown flag '--wiat'; did you mean --wait? (tool --help lists them)");
}

TEST(CommandsTest, WhatIsNoFlagIsAWord) {
  const auto words = [](const Words& arguments) {
    return parse_command_line(kProgram, arguments).words;
  };
  EXPECT_THAT(words({"set", "-7", "-7x"}), ElementsAre("-7", "-7x"));
  EXPECT_THAT(words({"set", "-", ""}), ElementsAre("-", ""));
  EXPECT_THAT(words({"set", "get", "[a,b]"}), ElementsAre("get", "[a,b]"));
  EXPECT_THAT(words({"set", "--", "--raw", "--"}), ElementsAre("--raw", "--"));
  EXPECT_THAT(words({"set", "k", "++", "--", "++"}), ElementsAre("k", "++", "++"));
  const CommandLine mistaken = parse_command_line(kProgram, {"gett", "get", "k"});
  EXPECT_EQ(mistaken.command, nullptr) << "only the first word can be one";
  EXPECT_THAT(mistaken.words, ElementsAre("gett", "get", "k"));
  const CommandLine hidden = parse_command_line(kProgram, {"--", "get", "k"});
  EXPECT_EQ(hidden.command, nullptr);
  EXPECT_THAT(hidden.words, ElementsAre("get", "k"));
  EXPECT_THAT(words({}), IsEmpty());
}

TEST(CommandsTest, TheLastOfSeveralWinsAndAValueMayBeEmpty) {
  const CommandLine line = parse_command_line(kProgram, {"-e", "a", "get", "--endpoint=", "k"});
  EXPECT_EQ(line.flags.find("endpoint")->value, "");
  EXPECT_EQ(line.flags.find("endpoint")->shown, "--endpoint");
  EXPECT_EQ(parse_command_line(kProgram, {"--endpoint", "a", "-eb"}).flags.find("endpoint")->value,
            "b");
}

// Scripts would break when a new flag makes an abbreviation ambiguous.
TEST(CommandsTest, OnlyAProgramThatRunsAnotherTakesAbbreviations) {
  EXPECT_THAT(error_of({"--endp", "x", "get", "k"}), HasSubstr("unknown flag '--endp'"));
}

TEST(CommandsTest, AVariableFillsInWhatNoFlagSays) {
  CommandLine line = parse_command_line(kProgram, {"get", "k"});
  (void)add_variables(kProgram, {"PET_RAW=1", "STORE=there"}, line.flags);
  EXPECT_EQ(line.flags.find("endpoint")->value, "there");
  EXPECT_EQ(line.flags.find("endpoint")->shown, "STORE");
  EXPECT_FALSE(line.flags.on("raw"));
}

TEST(CommandsTest, HelpAndManualNameCommandsAndTheirFlags) {
  const auto text = [](const char* flag) {
    return *answer(kProgram, parse_command_line(kProgram, {"get", flag}).flags);
  };
  EXPECT_THAT(text("--help"), HasSubstr("\n  get KEY                 reads\n"
                                        "      --wait              until it is there\n"));
  EXPECT_THAT(text("--print-man"), HasSubstr(".SH COMMANDS\n.TP\n.B get KEY\nreads\n.RS\n.TP\n"
                                             "\\fB\\-\\-wait\\fR\nuntil it is there.\n.RE\n"));
  EXPECT_THAT(text("--version"), testing::StartsWith("tool "));
}

TEST(CommandsTest, NumbersWithoutALimitSaySoInTheError) {
  const auto error = [](long long lowest, long long highest) -> std::string {
    try {
      return std::to_string(parse_integer({nullptr, Source::Flag, "add", "x"}, lowest, highest));
    } catch (const UsageError& wrong) {
      return wrong.what();
    }
  };
  using Limits = std::numeric_limits<long long>;
  EXPECT_EQ(error(Limits::min(), Limits::max()), "add 'x': expected a whole number");
  EXPECT_EQ(error(1, Limits::max()), "add 'x': expected a whole number of at least 1");
  EXPECT_EQ(error(1, 9), "add 'x': expected a whole number from 1 to 9");
}

TEST(CommandsTest, TheManualPageHasTheVariablesAndLeadsToTheDocuments) {
  const std::string page = manual_page(kProgram);
  EXPECT_THAT(page,
              HasSubstr("\n.SH ENVIRONMENT\n.TP\n.B STORE\nsets \\-\\-endpoint\n"
                        ".TP\n.B LOCAL_STORE\nif it is 1, sets \\-\\-endpoint to localhost\n"));
  EXPECT_THAT(page,
              HasSubstr("\n.BR drunctl (1)\n.PP\n.nh\nThe documents, in /usr/share/doc/drun/docs"));
}

}  // namespace
}  // namespace drun::cli
