// drunctl's command line, without a store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"
#include "ctl/drunctl.hpp"

namespace drun::ctl {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

CtlOptions options_of(const Words& arguments, const Words& environment = {}) {
  const ParsedCtl parsed = parse(arguments, environment);
  EXPECT_TRUE(parsed.options) << parsed.text;
  return parsed.options.value_or(CtlOptions());
}

std::string error_of(const Words& arguments) {
  try {
    (void)parse(arguments, {});
  } catch (const cli::UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(CtlOptionsTest, EachFlagIsRead) {
  const CtlOptions plain = options_of({"get", "k"});
  EXPECT_EQ(plain.endpoint, (Endpoint{"localhost", 29400}));
  EXPECT_EQ(plain.timeout, std::nullopt);
  EXPECT_FALSE(plain.retry || plain.json || plain.raw || plain.wait);
  const CtlOptions given = options_of({"--endpoint", "h:7", "--timeout", "250ms", "--retry",
                                       "--json", "--raw", "--prefix", "p", "get", "k", "--wait"});
  EXPECT_EQ(given.endpoint, (Endpoint{"h", 7}));
  EXPECT_EQ(given.timeout, 250ms);
  EXPECT_TRUE(given.retry && given.json && given.raw && given.wait);
  EXPECT_EQ(given.prefix, "p");
  EXPECT_EQ(given.command, "get");
  EXPECT_THAT(given.words, ElementsAre("k"));
  EXPECT_EQ(options_of({"set", "k", "--file", "f"}).file, "f");
  EXPECT_TRUE(options_of({"keys", "--null"}).null_separated);
  const CtlOptions watch = options_of({"watch", "--exact", "--count", "3"});
  EXPECT_TRUE(watch.exact);
  EXPECT_EQ(watch.count, 3U);
  EXPECT_TRUE(options_of({"health", "--ready"}).ready);
  const CtlOptions timeline = options_of({"timeline", "a", "b", "-o", "trace", "--html"});
  EXPECT_THAT(timeline.words, ElementsAre("a", "b"));
  EXPECT_EQ(timeline.output, "trace");
  EXPECT_TRUE(timeline.html);
  EXPECT_EQ(options_of({"timeline", "a", "--output", "-"}).output, "-");
  EXPECT_EQ(plain.output, std::nullopt);
  EXPECT_TRUE(options_of({"status", "--watch"}).live);
  EXPECT_FALSE(plain.endpoint_given);
  EXPECT_TRUE(given.endpoint_given);
}

TEST(CtlOptionsTest, TheEndpointIsTheFlagsOrTheVariablesUnlessThatIsEmpty) {
  EXPECT_EQ(options_of({"ping"}, {"DRUN_STORE=h:7"}).endpoint, (Endpoint{"h", 7}));
  EXPECT_EQ(options_of({"ping", "--endpoint", "g"}, {"DRUN_STORE=h:7"}).endpoint,
            (Endpoint{"g", 29400}));
  EXPECT_EQ(options_of({"ping"}, {"DRUN_STORE="}).endpoint, (Endpoint{"localhost", 29400}));
  EXPECT_THAT(error_of({"ping", "--endpoint", ""}), HasSubstr("--endpoint"));
}

TEST(CtlOptionsTest, StacksHaveOneForm) {
  EXPECT_TRUE(options_of({"stacks", "--collapsed"}).collapsed);
  EXPECT_THAT(error_of({"stacks", "--collapsed", "--json"}), HasSubstr("give one of them"));
}

TEST(CtlOptionsTest, BehindTwoDashesEverythingIsAWord) {
  const CtlOptions options = options_of({"--json", "--", "set", "--raw", "--json"});
  EXPECT_EQ(options.command, "set");
  EXPECT_THAT(options.words, ElementsAre("--raw", "--json"));
  EXPECT_FALSE(options.raw);
}

TEST(CtlOptionsTest, MistakesAreNamed) {
  EXPECT_EQ(error_of({}), "a command is missing; see --help");
  EXPECT_EQ(error_of({"--", "fetch"}), "there is no command 'fetch'; see --help");
  EXPECT_EQ(error_of({"--", "gte"}), "there is no command 'gte'; did you mean get?; see --help");
  EXPECT_EQ(error_of({"watch", "--count", "0"}),
            "--count '0': expected a whole number of at least 1");
  EXPECT_EQ(error_of({"stats", "--wait"}), "unknown flag '--wait' (drunctl --help lists them)");
}

TEST(CtlOptionsTest, NamesOfElsewhereLeadToOurs) {
  EXPECT_EQ(error_of({"exists", "k"}),
            "there is no command 'exists'; did you mean check?; see --help");
  EXPECT_EQ(error_of({"ls"}), "there is no command 'ls'; did you mean keys, or jobs?; see --help");
}

TEST(CtlOptionsTest, ACommandHasAHelpOfItsOwn) {
  const auto text = parse({"keys", "--help"}, {}).text;
  EXPECT_EQ(text,
            "usage: drunctl [flags] keys [START]\n\n"
            "  keys                    lists the keys that begin with START, in order, one a\n"
            "                          line\n"
            "      --null              a NUL byte after each instead of a line's end\n\n"
            "drunctl --help has the flags of all commands.\n");
}

TEST(CtlOptionsTest, UsageNamesTheCommandsWords) {
  EXPECT_EQ(usage_of("add"), "add KEY [N]");
  EXPECT_EQ(usage_of("ping"), "ping");
}

}  // namespace
}  // namespace drun::ctl
