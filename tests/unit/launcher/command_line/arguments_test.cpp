// The grammar of the command line: what argparse does, and where drun is kinder.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/printable.hpp"
#include "cli/parse.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/flags.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::words;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

cli::CommandLine scan(const std::vector<std::string>& arguments, bool launch = false) {
  return cli::parse_command_line(drun_program(launch), arguments);
}

std::vector<std::string> add_variables(const std::vector<std::string>& environment,
                                       cli::GivenFlags& flags) {
  return cli::add_variables(drun_program(false), environment, flags);
}

std::string value_of(const std::string& text, std::string_view name) {
  const cli::CommandLine line = scan(words(text));
  const cli::Setting* setting = line.flags.find(name);
  return setting == nullptr ? "(none)" : setting->value;
}

std::string error_of(const std::vector<std::string>& arguments, bool launch = false) {
  try {
    (void)scan(arguments, launch);
  } catch (const cli::UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(ArgumentsTest, EverySpellingOfAFlagMeansTheSame) {
  for (const char* line : {"--nproc-per-node 4 p", "--nproc_per_node 4 p", "--nproc-per-node=4 p",
                           "--nproc_per_node=4 p", "--nproc-per_node 4 p", "--nproc-per 4 p",
                           "--nproc_per=4 p", "--nproc 4 p", "--np 4 p"}) {
    EXPECT_EQ(value_of(line, "nproc-per-node"), "4") << line;
  }
}

TEST(ArgumentsTest, ShortFlagsTakeTheirValueAttachedOrNot) {
  for (const char* line : {"-r3 p", "-r 3 p", "-r=3 p", "--redirects 3 p"}) {
    EXPECT_EQ(value_of(line, "redirects"), "3") << line;
  }
  const cli::CommandLine line = scan(words("-mv -t2 p"));
  EXPECT_TRUE(line.flags.on("module"));
  EXPECT_TRUE(line.flags.on("verbose"));
  EXPECT_EQ(line.flags.find("tee")->value, "2");
}

TEST(ArgumentsTest, EachFlagIsKnownByItsNameAndItsUnderscores) {
  for (const cli::Flag& flag : drun_program(true).flags) {
    std::string underscored(flag.name);
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    for (const std::string& name : {std::string(flag.name), underscored}) {
      std::vector<std::string> arguments{"--" + name};
      if (flag.takes_value()) arguments.emplace_back("x");
      arguments.emplace_back("program");
      const cli::CommandLine line = scan(arguments, true);
      ASSERT_NE(line.flags.find(flag.name), nullptr) << name;
      EXPECT_EQ(line.flags.find(flag.name)->value, flag.takes_value() ? "x" : "1");
      EXPECT_THAT(line.words, ElementsAre("program"));
    }
  }
}

TEST(ArgumentsTest, TheLastOfSeveralWins) {
  EXPECT_EQ(value_of("--nnodes 1 --nnodes=2 --nn 3 p", "nnodes"), "3");
}

TEST(ArgumentsTest, EverythingFromTheProgramOnIsUntouched) {
  const auto program = [](const std::string& line) { return scan(words(line)).words; };
  EXPECT_THAT(program("--nnodes 1 p --nnodes 2 --help -- -x"),
              ElementsAre("p", "--nnodes", "2", "--help", "--", "-x"));
  EXPECT_THAT(program("-- p -- --x"), ElementsAre("p", "--", "--x"));
  EXPECT_THAT(program("--standalone -- --odd-name x"), ElementsAre("--odd-name", "x"));
  EXPECT_THAT(program("-- -- p"), ElementsAre("--", "p"));
  EXPECT_THAT(program("- x"), ElementsAre("-", "x"));
  EXPECT_THAT(program("--standalone"), IsEmpty());
  EXPECT_THAT(program(""), IsEmpty());
  EXPECT_THAT(scan({"", "x"}).words, ElementsAre("", "x"));
}

TEST(ArgumentsTest, ValuesMayBeEmptyNegativeOrHoldBlanksAndEqualsSigns) {
  EXPECT_EQ(value_of("--rdzv-conf= p", "rdzv-conf"), "");
  EXPECT_EQ(value_of("--max-restarts -1 p", "max-restarts"), "-1");
  EXPECT_EQ(value_of("--monitor-interval -.5 p", "monitor-interval"), "-.5");
  EXPECT_EQ(value_of("--rdzv-conf=a=b,c=d p", "rdzv-conf"), "a=b,c=d");
  EXPECT_EQ(value_of("--role=-x p", "role"), "-x");
  EXPECT_EQ(value_of("--role - p", "role"), "-");
  const cli::CommandLine blank = scan({"--role", "-a b", "p"});
  EXPECT_EQ(blank.flags.find("role")->value, "-a b");
}

// Whatever drun adds, an abbreviation that torchrun 2.14 takes means the same flag here.
TEST(ArgumentsTest, TorchrunsAbbreviationsKeepTheirMeaning) {
  std::size_t checked = 0;
  for (const cli::Flag& flag : drun_program(true).flags) {
    if (flag.origin != cli::Origin::Torchrun) continue;
    for (std::size_t length = 1; length <= flag.name.size(); ++length) {
      const std::string_view prefix = flag.name.substr(0, length);
      std::size_t matches = 0;
      bool exact = false;
      for (const cli::Flag& other : drun_program(true).flags) {
        if (other.origin == cli::Origin::Torchrun && other.name.starts_with(prefix)) ++matches;
        exact = exact || other.name == prefix;
      }
      if (matches != 1 || exact) continue;
      const std::vector<std::string> arguments{"--" + std::string(prefix), "x"};
      EXPECT_NE(scan(arguments).flags.find(flag.name), nullptr) << prefix;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100U);
  EXPECT_EQ(value_of("--local-a 10.0.0.1 p", "local-addr"), "10.0.0.1");
  EXPECT_EQ(value_of("--red 1 p", "redirects"), "1");
  EXPECT_EQ(value_of("--start fork p", "start-method"), "fork");
  EXPECT_EQ(value_of("--local-n 2 p", "local-nodes"), "2");  // drun's own abbreviate as well
}

TEST(ArgumentsTest, MistakesAreNamed) {
  EXPECT_EQ(error_of({"--rdzv", "x"}),
            "the flag '--rdzv' is ambiguous: --rdzv-endpoint, --rdzv-id, --rdzv-backend, "
            "--rdzv-conf");
  EXPECT_EQ(error_of({"--nnodes"}), "--nnodes needs a value: N|MIN:MAX[:STEP]");
  EXPECT_EQ(error_of({"-r"}), "-r needs a value: STREAMS");
  EXPECT_EQ(error_of({"--role", "--standalone", "p"}),
            "--role needs a value (NAME) before '--standalone'; a value that starts with a dash is "
            "written --role=--standalone");
  EXPECT_EQ(error_of({"--role", "--", "p"}),
            "--role needs a value (NAME) before '--'; a value that starts with a dash is written "
            "--role=--");
  EXPECT_EQ(error_of({"--standalone=yes", "p"}), "--standalone takes no value, and got 'yes'");
  EXPECT_EQ(error_of({"-m=yes", "p"}), "-m takes no value, and got 'yes'");
  EXPECT_THAT(error_of({"-2", "p"}), HasSubstr("unknown flag '-2'"));
}

TEST(ArgumentsTest, UnknownFlagsAreAnsweredWithTheLikelyOne) {
  const auto meant = [](const std::string& written) {
    const std::string text = error_of({written, "p"});
    EXPECT_THAT(text, HasSubstr("unknown flag '" + written.substr(0, 80)));
    const auto at = text.find("did you mean ");
    return at == std::string::npos ? std::string() : text.substr(at + 13, text.find('?') - at - 13);
  };
  EXPECT_EQ(meant("--nodes"), "--nnodes");
  EXPECT_EQ(meant("--nnode-s"), "--nnodes");
  EXPECT_EQ(meant("--nporc-per-node"), "--nproc-per-node");
  EXPECT_EQ(meant("--nprocs"), "--nproc-per-node");
  EXPECT_EQ(meant("--max-restart-count"), "--max-restarts");
  EXPECT_EQ(meant("--rdvz-id"), "--rdzv-id");
  EXPECT_EQ(meant("--rdzv_endpiont"), "--rdzv-endpoint");
  EXPECT_EQ(meant("-np"), "--nproc-per-node");
  EXPECT_EQ(meant("--num_gpus"), "--nproc-per-node");
  EXPECT_EQ(meant("--bind_cores_to_rank"), "--numa-binding");
  EXPECT_EQ(meant("--machine_rank"), "--node-rank");
  EXPECT_EQ(meant("--output-dir"), "--log-dir");
  EXPECT_EQ(meant("--npernode"), "--nproc-per-node");
  EXPECT_EQ(meant("-n4"), "");
  EXPECT_EQ(meant("--versoin"), "--version");
  EXPECT_EQ(meant("--completely-other-thing"), "");
  EXPECT_EQ(meant("--" + std::string(200, 'x')), "");
}

TEST(ArgumentsTest, FlagsOfOtherLaunchersAreAnsweredWithTheWayHere) {
  const auto tail = " (drun --help lists them; the program's own flags go after the program)";
  for (const char* written : {"-host", "--hosts", "-hosts", "--nodelist"})
    EXPECT_EQ(error_of({written, "a,b", "p"}),
              "unknown flag '" + std::string(written) + "'; did you mean --host?" + tail);
  for (const char* written : {"-hostfile", "--machinefile", "-machinefile"})
    EXPECT_EQ(error_of({written, "a", "p"}),
              "unknown flag '" + std::string(written) + "'; did you mean --hostfile?" + tail);
  for (const char* written : {"-env", "-genv"})
    EXPECT_EQ(error_of({written, "A=1", "p"}),
              "unknown flag '" + std::string(written) +
                  "'; workers inherit drun's environment: set "
                  "the variable for drun; for other hosts it is -x" +
                  tail);
  EXPECT_EQ(error_of({"--ntasks", "8", "p"}),
            std::string("unknown flag '--ntasks'; --nproc-per-node is the number of workers on "
                        "each node, --nnodes that of the nodes") +
                tail);
}

TEST(ArgumentsTest, EachHabitHasAnAnswer) {
  const auto answer = [](const std::string& flag) {
    const std::string text = error_of({flag, "x", "p"});
    const std::string head = "unknown flag '" + flag + "'; ";
    return text.starts_with(head) ? text.substr(head.size(), text.rfind(" (") - head.size()) : text;
  };
  EXPECT_EQ(answer("--prefix-output"), "did you mean --label?");
  EXPECT_EQ(answer("--output"), "did you mean --log-dir?");
  EXPECT_EQ(answer("--ngpus"), "did you mean --nproc-per-node?");
  EXPECT_THAT(answer("--world-size"), HasSubstr("--nnodes that of the nodes"));
  for (const char* flag : {"--oversubscribe", "--allow-run-as-root", "--use-env", "--use_env"})
    EXPECT_THAT(answer(flag), HasSubstr(": leave it out")) << flag;
  for (const char* flag : {"--wdir", "--chdir"})
    EXPECT_THAT(answer(flag), HasSubstr("workers start in drun's own folder")) << flag;
  EXPECT_THAT(answer("--map-by"), HasSubstr("--rank-order"));
}

TEST(ArgumentsTest, WhatOtherLaunchersCallItGoesBeforeAnAbbreviationOfOurOwnFlags) {
  EXPECT_THAT(error_of({"--env", "A=1", "./train"}),
              HasSubstr("unknown flag '--env'; workers inherit drun's environment"));
}

TEST(ArgumentsTest, UseEnvIsKnownToTheOlderCommandOnly) {
  EXPECT_EQ(error_of({"--use-env", "p"}, true), "(accepted)");
  EXPECT_EQ(error_of({"--use_env", "p"}, true), "(accepted)");
  EXPECT_THAT(error_of({"--use-env", "p"}), HasSubstr("unknown flag '--use-env'"));
}

TEST(ArgumentsTest, VariablesFillInWhatNoFlagSays) {
  cli::CommandLine line = scan({"--nnodes", "2", "p"});
  (void)add_variables({"PATH=/bin", "PET_NNODES=9", "PET_NPROC_PER_NODE=3", "PET_STANDALONE=2",
                       "PET_NO_PYTHON=0", "PET_UNKNOWN=1", "PET_HELP=1", "PET_NPROC_PER_NODE=5",
                       "PET_ROLE=", "PET_", "PET_MAX_RESTARTS="},
                      line.flags);
  EXPECT_EQ(line.flags.find("nnodes")->value, "2");
  EXPECT_EQ(line.flags.find("nnodes")->source, cli::Source::Flag);
  EXPECT_EQ(line.flags.find("nproc-per-node")->value, "3");  // as getenv: the first
  EXPECT_EQ(line.flags.find("nproc-per-node")->shown, "PET_NPROC_PER_NODE");
  EXPECT_EQ(line.flags.find("nproc-per-node")->source, cli::Source::Variable);
  EXPECT_TRUE(line.flags.on("standalone"));
  EXPECT_FALSE(line.flags.on("no-python"));
  EXPECT_EQ(line.flags.find("role")->value, "");  // as in torchrun
  EXPECT_EQ(line.flags.find("max-restarts"), nullptr);
  EXPECT_EQ(line.flags.find("help"), nullptr);
}

TEST(ArgumentsTest, AFlagRemembersTheVariableThatItOverrides) {
  cli::CommandLine line = scan({"--nproc-per-node", "2", "--worker-store", "agent", "p"});
  (void)add_variables({"PET_NPROC_PER_NODE=4", "PET_NPROC_PER_NODE=5", "PET_NNODES=2",
                       "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"},
                      line.flags);
  EXPECT_EQ(line.flags.find("nproc-per-node")->value, "2");
  EXPECT_EQ(line.flags.find("nproc-per-node")->over, "PET_NPROC_PER_NODE=4");
  EXPECT_EQ(line.flags.find("worker-store")->over, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1");
  EXPECT_EQ(line.flags.find("nnodes")->over, "");
}

TEST(ArgumentsTest, AVariableWithThePrefixThatSetsNoFlagIsNamed) {
  cli::GivenFlags flags;
  EXPECT_THAT(
      add_variables({"PET_NPROC_PER_NOD=4", "PET_NNODE=2", "PET_NNODES=2", "PETS=1", "PET_X\33=9"},
                    flags),
      ElementsAre("the variable 'PET_NPROC_PER_NOD' sets no flag; did you mean PET_NPROC_PER_NODE?",
                  "the variable 'PET_NNODE' sets no flag; did you mean PET_NNODES?",
                  "the variable 'PET_X\\x1b' sets no flag"));
}

TEST(ArgumentsTest, TodaysNameOfAVariableWinsOverTheOneOfBefore) {
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{"PET_GPUS=1", "PET_GPU_IDS=2"}, {"PET_GPU_IDS=2", "PET_GPUS=1"}}) {
    cli::GivenFlags flags;
    EXPECT_THAT(add_variables(environment, flags), testing::IsEmpty());
    EXPECT_EQ(flags.find("gpu-ids")->value, "2");
    EXPECT_EQ(flags.find("gpu-ids")->shown, "PET_GPU_IDS");
  }
  cli::GivenFlags flags;
  EXPECT_THAT(add_variables({"PET_GPUS=1", "PET_nnodes=2"}, flags),
              ElementsAre("the variable 'PET_nnodes' sets no flag; did you mean PET_NNODES?"));
  EXPECT_EQ(flags.find("gpu-ids")->shown, "PET_GPUS");
}

TEST(ArgumentsTest, TorchrunsVariablesOfOtherNamesComeLast) {
  cli::GivenFlags flags;
  (void)add_variables(
      {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=x",
       "PET_LOG_LINE_PREFIX_TEMPLATE=y", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"},
      flags);
  EXPECT_EQ(flags.find("shutdown-timeout")->value, "7");
  EXPECT_EQ(flags.find("shutdown-timeout")->shown, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  EXPECT_EQ(flags.find("log-line-prefix-template")->value, "y");
  EXPECT_EQ(flags.find("worker-store")->value, "rank0");
  cli::GivenFlags others;
  (void)add_variables({"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0"}, others);
  EXPECT_EQ(others.find("worker-store"), nullptr);
}

TEST(ArgumentsTest, ASwitchsVariableHoldsANumber) {
  for (const char* value : {"yes", "true", "1x", " 1"}) {
    cli::GivenFlags flags;
    try {
      (void)add_variables({std::string("PET_STANDALONE=") + value}, flags);
      ADD_FAILURE() << value;
    } catch (const cli::UsageError& error) {
      EXPECT_EQ(error.what(),
                "PET_STANDALONE='" + std::string(value) + "': expected 1 (on) or 0 (off)");
    }
  }
}

TEST(ArgumentsTest, QuotingKeepsErrorsOnOneReadableLine) {
  EXPECT_EQ(in_quotes("plain"), "'plain'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("a\nb\x1b[31m"), "'a\\nb\\x1b[31m'");
  EXPECT_THAT(in_quotes(std::string(500, 'a')), AllOf(EndsWith("a...'"), testing::SizeIs(85)));
}

// Any words at all: options or one line and code 2, never a crash.
TEST(ArgumentsTest, NoCommandLineBreaksTheParser) {
  const std::vector<std::string> pieces{"--",
                                        "-",
                                        "--nnodes",
                                        "-r",
                                        "=",
                                        "--=",
                                        "-=",
                                        "--nnodes=",
                                        "0",
                                        "-1",
                                        "1:2",
                                        ":",
                                        "a=b",
                                        "\n",
                                        "\xff\xfe",
                                        "-mmm",
                                        "-vr",
                                        "[::1",
                                        "::",
                                        "p.py",
                                        "h:70000",
                                        "@",
                                        ":1",
                                        "--explain",
                                        "--dry-run",
                                        "-m",
                                        "--tee",
                                        "1-",
                                        "x,y",
                                        "--role",
                                        "--gpu-ids",
                                        "--include",
                                        "99999999999999999999",
                                        "--rdzv-conf=,",
                                        "--rdzv-endpoint",
                                        "--standalone",
                                        "--node-rank",
                                        "--local-nodes",
                                        "--restart-on",
                                        "--omp-threads",
                                        std::string(5000, 'z')};
  std::mt19937 random(20240607);
  int accepted = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::vector<std::string> arguments;
    for (auto left = random() % 7; left > 0; --left) {
      arguments.push_back(pieces[random() % pieces.size()]);
    }
    const Parsed parsed = test::parse(arguments);
    if (parsed.options || parsed.exit_code == 0) {
      ++accepted;
      continue;
    }
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_TRUE(parsed.text.starts_with("drun: error: ")) << parsed.text;
    EXPECT_EQ(parsed.text.find('\n'), parsed.text.size() - 1) << parsed.text;
  }
  EXPECT_GT(accepted, 30);
}

}  // namespace
}  // namespace drun::launcher
