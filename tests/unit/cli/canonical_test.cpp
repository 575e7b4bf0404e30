// What is rewritten for CLI11, by a program that runs another; drun's own flags are tried in
// tests/unit/launcher/command_line.
#include "cli/canonical.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr auto kOwn = Origin::Own;
constexpr std::array kFlags{Flag{"tee", 't', "N", "", kOwn, "Flags", "", "copies"},
                            Flag{"log-dir", 0, "DIR", "", kOwn, "Flags", "", "where"},
                            Flag{"log-size", 0, "SIZE", "", kOwn, "Flags", "", "how much"},
                            Flag{"verbose", 'v', "", "", kOwn, "Flags", "", "more"}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kAliases{
    {{"folder", "log-dir"}}};
constexpr Program kProgram{.name = "tool",
                           .purpose = "a tool",
                           .usage = "tool [flags] PROGRAM\n",
                           .about = "About it.\n",
                           .notes = "",
                           .flags = kFlags,
                           .runs_program = true,
                           .aliases = kAliases};

Words rewritten(const Words& arguments) {
  return canonical(kProgram, arguments).arguments;
}

std::string error_of(const Words& arguments) {
  try {
    (void)canonical(kProgram, arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(CanonicalTest, AFlagHasItsWholeNameAndItsValueIsAWordOfItsOwn) {
  for (const Words& line : {Words{"--log-dir", "d"}, Words{"--log-dir=d"}, Words{"--log_dir", "d"},
                            Words{"--log-d=d"}, Words{"--folder=d"}})
    EXPECT_THAT(rewritten(line), ElementsAre("--log-dir", "d"));
  EXPECT_THAT(rewritten({"--log-dir="}), ElementsAre("--log-dir", ""));
  EXPECT_THAT(rewritten({"--log-dir==x=y"}), ElementsAre("--log-dir", "=x=y"));
}

TEST(CanonicalTest, LettersMayShareAWord) {
  for (const Words& line : {Words{"-t3"}, Words{"-t", "3"}, Words{"-t=3"}})
    EXPECT_THAT(rewritten(line), ElementsAre("-t", "3"));
  EXPECT_THAT(rewritten({"-vt3"}), ElementsAre("-v", "-t", "3"));
  EXPECT_THAT(rewritten({"-tv"}), ElementsAre("-t", "v"));
}

TEST(CanonicalTest, WhatFollowsTheProgramIsLeftAlone) {
  EXPECT_THAT(rewritten({"-v", "program", "--log_d", "-t"}),
              ElementsAre("-v", "program", "--log_d", "-t"));
  const Canonical line = canonical(kProgram, {"-v", "--", "-program", "-t"});
  EXPECT_THAT(line.arguments, ElementsAre("-v"));
  EXPECT_THAT(line.only_words, ElementsAre("-program", "-t"));
  EXPECT_THAT(rewritten({}), IsEmpty());
}

TEST(CanonicalTest, AValueMayLookLikeANumberOrASentenceButNotLikeAFlag) {
  EXPECT_THAT(rewritten({"-t", "-1.5"}), ElementsAre("-t", "-1.5"));
  EXPECT_THAT(rewritten({"-t", "-a b"}), ElementsAre("-t", "-a b"));
  EXPECT_THAT(rewritten({"-t", "-"}), ElementsAre("-t", "-"));
  EXPECT_EQ(error_of({"--log-dir", "-v"}),
            "--log-dir needs a value (DIR) before '-v'; a value that starts with a dash is written "
            "--log-dir=-v");
  EXPECT_EQ(error_of({"-t", "--", "p"}),
            "-t needs a value (N) before '--'; a value that starts with a dash is written -t--");
  EXPECT_EQ(error_of({"--tee"}), "--tee needs a value: N");
}

TEST(CanonicalTest, ASwitchTakesNoValue) {
  EXPECT_EQ(error_of({"--verbose=1"}), "--verbose takes no value, and got '1'");
  EXPECT_EQ(error_of({"-v=1"}), "-v takes no value, and got '1'");
}

TEST(CanonicalTest, AnAbbreviationMustBeUnique) {
  EXPECT_EQ(error_of({"--log", "x"}), "the flag '--log' is ambiguous: --log-dir, --log-size");
}

TEST(CanonicalTest, EachUseIsKeptWithItsSpelling) {
  const Canonical line = canonical(kProgram, {"-t3", "--log_d=d", "--folder", "e", "--te", "1"});
  Words shown;
  for (const auto& use : line.used)
    shown.push_back(std::string(use.flag->name) + " as " + use.shown);
  EXPECT_THAT(shown, ElementsAre("tee as -t", "log-dir as --log-dir", "log-dir as --folder",
                                 "tee as --tee"));
}

}  // namespace
}  // namespace drun::cli
