#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "cli/answer.hpp"
#include "cli/manual.hpp"
#include "launcher/command_line/conf_keys.hpp"
#include "launcher/command_line/explain.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/values.hpp"
#include "launcher/workers/environment.hpp"
#include "support/golden.hpp"
#include "support/options_support.hpp"
#include "support/places.hpp"

namespace drun::launcher {
namespace {

using drun::test::expect_golden;
using test::parse;
using test::words;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HelpTest, HelpIsGolden) {
  const Parsed parsed = parse({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  expect_golden("command_line/help.txt", parsed.text);
  expect_golden("command_line/help_all.txt", parse({"--help-all"}).text);
  EXPECT_EQ(parse(words("--nnodes x --help")).text, parsed.text);
  EXPECT_EQ(parse({"--help"}, {"PET_STANDALONE=broken"}).text, parsed.text);
}

TEST(HelpTest, TheLetterShowsTheFlagsUsedMost) {
  const Parsed parsed = parse({"-h"});
  EXPECT_EQ(parsed.exit_code, 0);
  expect_golden("command_line/help_brief.txt", parsed.text);
  EXPECT_EQ(parse(words("-r 3 -vh")).text, parsed.text);
  EXPECT_EQ(parse(words("-h --help")).text, parse({"--help"}).text);
}

TEST(HelpTest, TheManualIsGolden) {
  expect_golden("command_line/drun.1", parse({"--print-man"}).text);
}

TEST(HelpTest, EachGroupFitsAScreen) {
  std::size_t longest = 0;
  std::size_t lines = 0;
  for (const std::string& line : split(help_text(drun_program(true), true), '\n')) {
    EXPECT_LE(line.size(), 80U) << line;
    lines = line.empty() ? 0 : lines + 1;
    longest = std::max(longest, lines);
  }
  EXPECT_LE(longest, 24U);
}

TEST(HelpTest, EveryFlagIsInTheHelpAndInTheManual) {
  const std::string help = help_text(drun_program(true), true);
  const std::string manual = manual_page(drun_program(false));
  for (const cli::Flag& flag : drun_program(true).flags) {
    EXPECT_THAT(help, HasSubstr("--" + std::string(flag.name)));
    EXPECT_THAT(manual, HasSubstr("\\fB\\-\\-" + cli::troff(flag.name) + "\\fR"));
  }
}

TEST(HelpTest, AWordOfOtherLaunchersThatWorksIsShown) {
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("\n  -n, --nproc-per-node N|"));
  EXPECT_THAT(parse({"--help-all"}).text, HasSubstr("\n  -n, --nproc-per-node N|"));
  EXPECT_THAT(parse({"-h"}).text, HasSubstr("\n  -n, --nproc-per-node N|"));
  EXPECT_THAT(parse({"--print-man"}).text, HasSubstr("\\fB\\-n\\fR, \\fB\\-\\-nproc"));
}

// A script that does not know it takes its value for the program.
TEST(HelpTest, CompletionsKnowTheValueOfAWordOfOtherLaunchers) {
  EXPECT_THAT(parse(words("--print-completion bash")).text, HasSubstr(" --nproc-per-node -n "));
  EXPECT_THAT(parse(words("--print-completion bash")).text,
              HasSubstr("--nproc-per-node | -n) offers='auto"));
  EXPECT_THAT(parse(words("--print-completion zsh")).text, HasSubstr("'*-n["));
  EXPECT_THAT(parse(words("--print-completion fish")).text, HasSubstr(" -l nproc-per-node -s n "));
}

// fish would offer programs for the value of a flag that it has no line of.
TEST(HelpTest, FishKnowsTheFlagsThatNothingShows) {
  const std::string script = parse(words("--print-completion fish")).text;
  EXPECT_THAT(script, HasSubstr("-n '_drun_typed --gpus' -l gpus -x -a 'all'"));
  EXPECT_THAT(script, HasSubstr("-n '_drun_typed --start-method' -l start-method -x -a 'spawn"));
}

TEST(HelpTest, EveryKeyOfTheConfIsInTheManualAndInTheCompletion) {
  const std::string manual = manual_page(drun_program(false));
  const std::string completion = parse(words("--print-completion bash")).text;
  for (const ConfKey& key : kConfKeys) {
    EXPECT_THAT(manual, HasSubstr("\n.B " + std::string(key.name) + "\n"));
    EXPECT_THAT(completion, HasSubstr(std::string(key.name) + "="));
  }
}

// In bold, as troff has it.
std::string names_in(const std::string& manual) {
  std::string result;
  for (const std::string& line : split(manual, '\n')) {
    if (line.starts_with(".B ")) result += ", " + line.substr(3) + ",";
  }
  return result;
}

TEST(HelpTest, EveryVariableOfAWorkerIsInTheManual) {
  const std::string names = names_in(manual_page(drun_program(false)));
  const auto options = test::options_of(
      "--nproc-per-node 2 --framework jax,mpi,oneccl,tensorflow --worker-store rank0 "
      "--replica-groups 2 p");
  rendezvous::Assignment assignment;
  assignment.ends_ms = 1;
  for (const std::string& entry :
       WorkerEnvironments(options, assignment, {"a:1"}, "/timers").set_by_drun(0, "/error.json"))
    EXPECT_THAT(names, HasSubstr(", " + entry.substr(0, entry.find('=')) + ","));
}

TEST(HelpTest, EveryExitCodeOfDrunsOwnIsInTheManualAndInItsPage) {
  const std::string names = names_in(manual_page(drun_program(false)));
  std::stringstream page;
  page << std::ifstream(places::source("docs/cli.md")).rdbuf();
  for (const int code :
       {kUsageError, kDoNotRequeue, kUnfit, kTimeLimit, kDrunFailed, kCannotRun, kNotFound}) {
    EXPECT_THAT(names, HasSubstr(", " + std::to_string(code) + ","));
    EXPECT_THAT(page.str(),
                ::testing::ContainsRegex("\n\\|[0-9, ]* " + std::to_string(code) + "[0-9, ]* \\|"));
  }
}

// Given as flags, the defaults that are told change nothing; but who asks for --preflight is told
// where there is nothing to compare, who gives a prefix that there is no line for it, and without
// hosts nothing says how to start them.
TEST(HelpTest, WhatIsToldAsTheDefaultIsTheDefault) {
  std::vector<std::string> line;
  for (const cli::Flag& flag : drun_program(false).flags) {
    const bool of_hosts = flag.name == "launcher" || flag.name == "fan-out";
    const bool told = flag.name == "preflight" || flag.name == "log-line-prefix-template";
    if (flag.takes_value() && !flag.fallback.empty() && !told && !of_hosts)
      line.push_back("--" + std::string(flag.name) + "=" + std::string(flag.fallback));
  }
  EXPECT_GT(line.size(), 15U);
  line.emplace_back("p");
  const Parsed told = parse(line);
  const Parsed plain = parse({"--rdzv-id=none", "p"});
  ASSERT_TRUE(told.options) << told.text;
  const Options& a = *told.options;
  const Options& b = *plain.options;
  EXPECT_EQ(explain_text({}, a), explain_text({}, b));
  EXPECT_EQ(a.max_restarts, b.max_restarts);
  EXPECT_EQ(a.role, b.role);
  EXPECT_EQ(a.resize, b.resize);
  EXPECT_EQ(a.rank_order, b.rank_order);
  EXPECT_EQ(a.exit_code, b.exit_code);
  EXPECT_EQ(a.shutdown_timeout, b.shutdown_timeout);
  EXPECT_EQ(a.signals_to_handle, b.signals_to_handle);
  // What workers are told by default is torchrun's.
  EXPECT_EQ(a.signals_to_handle_text + ",SIGQUIT", b.signals_to_handle_text);
  EXPECT_EQ(a.forward_signals, b.forward_signals);
  EXPECT_EQ(a.stdin_rank, b.stdin_rank);
  EXPECT_EQ(a.output.redirects, b.output.redirects);
  EXPECT_EQ(a.output.tee, b.output.tee);
  EXPECT_EQ(a.output.tail_lines, b.output.tail_lines);
  EXPECT_EQ(a.output.color, b.output.color);
  EXPECT_EQ(a.notes, b.notes);
}

TEST(HelpTest, WhatIsToldAsAKeysDefaultIsTheDefault) {
  std::string conf;
  for (const ConfKey& key : kConfKeys) {
    const bool word = key.fallback.find_first_of(" ;:") == std::string_view::npos;
    if (word && !key.fallback.empty())
      conf += "," + std::string(key.name) + "=" + std::string(key.fallback);
  }
  EXPECT_THAT(conf, HasSubstr("read_timeout="));
  EXPECT_EQ(parse({"--rdzv-conf", conf.substr(1), "p"}).options->conf, RendezvousConf());
}

TEST(HelpTest, UseEnvIsOfferedByTheOlderCommandOnly) {
  EXPECT_THAT(parse({"--help"}, {}, "drun-launch").text, HasSubstr("--use-env"));
  EXPECT_THAT(parse({"--help"}).text, Not(HasSubstr("--use-env")));
}

TEST(HelpTest, TheTableIsConsistent) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const cli::Flag& flag : drun_program(true).flags) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_TRUE(flag.letter == 0 || letters.insert(flag.letter).second) << flag.name;
    EXPECT_EQ(flag.metavar.empty(), !flag.takes_value()) << flag.name;
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_FALSE(flag.help.ends_with('.')) << flag.name;
    EXPECT_EQ(flag.name.find('_'), std::string_view::npos) << flag.name;
  }
}

std::string with_bars_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

// The table at the end of docs/cli.md.
std::string flag_table() {
  std::string result;
  for (const std::string_view group : drun_program(true).groups()) {
    result += "\n### " + std::string(group) + "\n\n| Flag | Default | torchrun | Meaning |\n" +
              "|---|---|---|---|\n";
    for (const cli::Flag& flag : drun_program(true).flags) {
      if (flag.group != group) continue;
      result += "| `";
      const std::string brief = short_form(drun_program(true), flag);
      if (!brief.empty()) result += brief + "`, `";
      result += "--" + std::string(flag.name);
      if (!flag.metavar.empty()) result += " " + with_bars_escaped(flag.metavar);
      result += "` | ";
      if (!flag.fallback.empty()) result += "`" + std::string(flag.fallback) + "`";
      result += flag.origin == cli::Origin::Own      ? " | | "
                : flag.origin == cli::Origin::Launch ? " | launch | "
                                                     : " | yes | ";
      result += with_bars_escaped(flag.help) + " |\n";
    }
  }
  return result + "\n";
}

// The table of keys above it.
std::string conf_table() {
  std::string result = "\n| Key | Default | Meaning |\n|---|---|---|\n";
  for (const ConfKey& key : kConfKeys) {
    result += "| `" + std::string(key.name) + "`";
    if (!key.synonym.empty()) result += ", `" + std::string(key.synonym) + "`";
    result += " | " + std::string(key.fallback) + (key.fallback.empty() ? "" : " ") + "| ";
    result += std::string(key.help) + " |\n";
  }
  return result + "\n";
}

// Of docs/cli.md, between <!-- name and <!-- end of name.
void expect_in_document(const std::string& name, const std::string& expected) {
  const std::string path = places::source("docs/cli.md");
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string document = text.str();
  const auto begin = document.find("-->", document.find("<!-- " + name)) + 4;
  const auto end = document.find("<!-- end of " + name + " -->");
  ASSERT_LE(begin, end);
  if (std::getenv("DRUN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << document.replace(begin, end - begin, expected);
    return;
  }
  EXPECT_EQ(document.substr(begin, end - begin), expected) << "DRUN_UPDATE_GOLDEN=1 writes it anew";
}

TEST(HelpTest, TheDocumentListsEveryFlagAndKey) {
  expect_in_document("flags", flag_table());
  expect_in_document("keys", conf_table());
}

// Section by section what torchrun 2.14 has: a flag that is missing here breaks somebody's script.
TEST(HelpTest, TorchrunsFlagsAreAllThere) {
  for (const char* name : {"nnodes",
                           "nproc-per-node",
                           "rdzv-backend",
                           "rdzv-endpoint",
                           "rdzv-id",
                           "rdzv-conf",
                           "standalone",
                           "max-restarts",
                           "monitor-interval",
                           "start-method",
                           "event-log-handler",
                           "role",
                           "module",
                           "no-python",
                           "run-path",
                           "log-dir",
                           "redirects",
                           "tee",
                           "log-line-prefix-template",
                           "local-ranks-filter",
                           "duplicate-stdout-filters",
                           "duplicate-stderr-filters",
                           "node-rank",
                           "master-addr",
                           "master-port",
                           "local-addr",
                           "logs-specs",
                           "numa-binding",
                           "signals-to-handle",
                           "shutdown-timeout",
                           "virtual-local-rank",
                           "print-completion"}) {
    ASSERT_NE(drun_program(false).find(name), nullptr) << name;
    EXPECT_EQ(drun_program(false).find(name)->origin, cli::Origin::Torchrun) << name;
  }
  EXPECT_EQ(drun_program(false).find("module")->letter, 'm');
  EXPECT_EQ(drun_program(false).find("redirects")->letter, 'r');
  EXPECT_EQ(drun_program(false).find("tee")->letter, 't');
  EXPECT_EQ(variable_of(drun_program(false), *drun_program(false).find("nproc-per-node")),
            "PET_NPROC_PER_NODE");
}

TEST(HelpTest, CompletionsAreForThreeShells) {
  EXPECT_EQ(parse(words("--print-completion zsh")).exit_code, 0);
  EXPECT_EQ(parse(words("--print-completion tcsh")).text,
            "drun: error: --print-completion 'tcsh': expected bash, zsh or fish\n");
}

TEST(HelpTest, ExplainSaysWhereEachValueCameFrom) {
  const Parsed parsed =
      parse(words("--explain --nnodes 2 --rdzv-endpoint h --rdzv-conf join_timeout=1.5 ./train"),
            {"PET_MAX_RESTARTS=3", "PET_NO_PYTHON=0", "PET_NNODES=4"});
  EXPECT_EQ(parsed.exit_code, 0);
  expect_golden("command_line/explain.txt", parsed.text);
  EXPECT_EQ(parse(words("--explain --nnodes 0 ./train")).exit_code, 2);
}

TEST(HelpTest, ExplainNeedsNoProgram) {
  const Parsed parsed = parse(words("--explain --nproc-per-node 2"), {"PET_NPROC_PER_NODE=4"});
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_THAT(parsed.text, HasSubstr("nproc-per-node  2  --nproc-per-node over "
                                     "PET_NPROC_PER_NODE=4\n"));
  EXPECT_EQ(parse({"--explain", ""}).exit_code, 2);
  EXPECT_EQ(parse(words("--explain -m --no-python")).exit_code, 2);
}

TEST(HelpTest, AValueThatIsTooWideForItsColumnHasALineOfItsOwn) {
  const std::string conf = "join_timeout=1000,last_call_timeout=10";
  const Parsed parsed = parse(words("--explain --rdzv-conf " + conf + " ./train"));
  const std::string indent(11, ' ');
  EXPECT_THAT(parsed.text, HasSubstr("rdzv-conf  " + conf + "\n" + indent + "  --rdzv-conf\n"));
  EXPECT_THAT(parsed.text, HasSubstr("\nduplicate-stdout-filters  -\n"));
}

}  // namespace
}  // namespace drun::launcher
