// The grammar of the command line: what argparse does, and where drun is kinder.
#include "launcher/command_line/options_scan.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::words;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string value_of(const std::string& line, std::string_view name) {
  const Scanned scanned = scan_arguments(words(line), false);
  const Setting* setting = scanned.settings.find(name);
  return setting == nullptr ? "(none)" : setting->value;
}

std::string error_of(const std::vector<std::string>& arguments, bool launch = false) {
  try {
    (void)scan_arguments(arguments, launch);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(OptionsScanTest, EverySpellingOfAFlagMeansTheSame) {
  for (const char* line : {"--nproc-per-node 4 p", "--nproc_per_node 4 p", "--nproc-per-node=4 p",
                           "--nproc_per_node=4 p", "--nproc-per_node 4 p", "--nproc-per 4 p",
                           "--nproc_per=4 p", "--nproc 4 p", "--np 4 p"}) {
    EXPECT_EQ(value_of(line, "nproc-per-node"), "4") << line;
  }
}

TEST(OptionsScanTest, ShortFlagsTakeTheirValueAttachedOrNot) {
  for (const char* line : {"-r3 p", "-r 3 p", "-r=3 p", "--redirects 3 p"}) {
    EXPECT_EQ(value_of(line, "redirects"), "3") << line;
  }
  const Scanned scanned = scan_arguments(words("-mv -t2 p"), false);
  EXPECT_TRUE(scanned.settings.on("module"));
  EXPECT_TRUE(scanned.settings.on("verbose"));
  EXPECT_EQ(scanned.settings.find("tee")->value, "2");
}

TEST(OptionsScanTest, EachFlagIsKnownByItsNameAndItsUnderscores) {
  for (const Flag& flag : all_flags()) {
    std::string underscored(flag.name);
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    for (const std::string& name : {std::string(flag.name), underscored}) {
      std::vector<std::string> arguments{"--" + name};
      if (flag.arity == Arity::Value) arguments.emplace_back("x");
      arguments.emplace_back("program");
      const Scanned scanned = scan_arguments(arguments, true);
      ASSERT_NE(scanned.settings.find(flag.name), nullptr) << name;
      EXPECT_EQ(scanned.settings.find(flag.name)->value, flag.arity == Arity::Value ? "x" : "1");
      EXPECT_THAT(scanned.program, ElementsAre("program"));
    }
  }
}

TEST(OptionsScanTest, TheLastOfSeveralWins) {
  EXPECT_EQ(value_of("--nnodes 1 --nnodes=2 --nn 3 p", "nnodes"), "3");
}

TEST(OptionsScanTest, EverythingFromTheProgramOnIsUntouched) {
  const auto program = [](const std::string& line) {
    return scan_arguments(words(line), false).program;
  };
  EXPECT_THAT(program("--nnodes 1 p --nnodes 2 --help -- -x"),
              ElementsAre("p", "--nnodes", "2", "--help", "--", "-x"));
  EXPECT_THAT(program("-- p -- --x"), ElementsAre("p", "--", "--x"));
  EXPECT_THAT(program("--standalone -- --odd-name x"), ElementsAre("--odd-name", "x"));
  EXPECT_THAT(program("-- -- p"), ElementsAre("--", "p"));
  EXPECT_THAT(program("- x"), ElementsAre("-", "x"));
  EXPECT_THAT(program("--standalone"), IsEmpty());
  EXPECT_THAT(program(""), IsEmpty());
  EXPECT_THAT(scan_arguments({"", "x"}, false).program, ElementsAre("", "x"));
}

TEST(OptionsScanTest, ValuesMayBeEmptyNegativeOrHoldBlanksAndEqualsSigns) {
  EXPECT_EQ(value_of("--rdzv-conf= p", "rdzv-conf"), "");
  EXPECT_EQ(value_of("--max-restarts -1 p", "max-restarts"), "-1");
  EXPECT_EQ(value_of("--monitor-interval -.5 p", "monitor-interval"), "-.5");
  EXPECT_EQ(value_of("--rdzv-conf=a=b,c=d p", "rdzv-conf"), "a=b,c=d");
  EXPECT_EQ(value_of("--role=-x p", "role"), "-x");
  EXPECT_EQ(value_of("--role - p", "role"), "-");
  const Scanned blank = scan_arguments({"--role", "-a b", "p"}, false);
  EXPECT_EQ(blank.settings.find("role")->value, "-a b");
}

// Whatever drun adds, an abbreviation that torchrun 2.14 takes means the same flag here.
TEST(OptionsScanTest, TorchrunsAbbreviationsKeepTheirMeaning) {
  std::size_t checked = 0;
  for (const Flag& flag : all_flags()) {
    if (flag.origin != Origin::Torchrun) continue;
    for (std::size_t length = 1; length <= flag.name.size(); ++length) {
      const std::string_view prefix = flag.name.substr(0, length);
      std::size_t matches = 0;
      bool exact = false;
      for (const Flag& other : all_flags()) {
        if (other.origin == Origin::Torchrun && other.name.starts_with(prefix)) ++matches;
        exact = exact || other.name == prefix;
      }
      if (matches != 1 || exact) continue;
      const std::vector<std::string> arguments{"--" + std::string(prefix), "x"};
      EXPECT_NE(scan_arguments(arguments, false).settings.find(flag.name), nullptr) << prefix;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100U);
  EXPECT_EQ(value_of("--local-a 10.0.0.1 p", "local-addr"), "10.0.0.1");
  EXPECT_EQ(value_of("--red 1 p", "redirects"), "1");
  EXPECT_EQ(value_of("--start fork p", "start-method"), "fork");
  EXPECT_EQ(value_of("--local-n 2 p", "local-nodes"), "2");  // drun's own abbreviate as well
}

TEST(OptionsScanTest, MistakesAreNamed) {
  EXPECT_EQ(error_of({"--rdzv", "x"}),
            "the flag '--rdzv' is ambiguous: --rdzv-endpoint, --rdzv-id, --rdzv-backend, "
            "--rdzv-conf");
  EXPECT_EQ(error_of({"--nnodes"}), "--nnodes needs a value: N|MIN:MAX");
  EXPECT_EQ(error_of({"-r"}), "-r needs a value: STREAMS");
  EXPECT_EQ(error_of({"--role", "--standalone", "p"}),
            "--role needs a value (NAME) before '--standalone'; a value that starts with a dash is "
            "written --role=--standalone");
  EXPECT_EQ(error_of({"--role", "--", "p"}),
            "--role needs a value (NAME) before '--'; a value that starts with a dash is written "
            "--role=--");
  EXPECT_EQ(error_of({"--standalone=yes", "p"}), "--standalone takes no value, and got 'yes'");
  EXPECT_EQ(error_of({"-m=yes", "p"}), "-m takes no value, and got 'yes'");
}

TEST(OptionsScanTest, UnknownFlagsAreAnsweredWithTheLikelyOne) {
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
  EXPECT_EQ(meant("--hostfile"), "--rdzv-endpoint");
  EXPECT_EQ(meant("-H"), "--rdzv-endpoint");
  EXPECT_EQ(meant("-n"), "--nproc-per-node");
  EXPECT_EQ(meant("--versoin"), "--version");
  EXPECT_EQ(meant("--completely-other-thing"), "");
  EXPECT_EQ(meant("--" + std::string(200, 'x')), "");
}

TEST(OptionsScanTest, UseEnvIsKnownToTheOlderCommandOnly) {
  EXPECT_EQ(error_of({"--use-env", "p"}, true), "(accepted)");
  EXPECT_EQ(error_of({"--use_env", "p"}, true), "(accepted)");
  EXPECT_THAT(error_of({"--use-env", "p"}, false), HasSubstr("unknown flag '--use-env'"));
}

TEST(OptionsScanTest, VariablesFillInWhatNoFlagSays) {
  Scanned scanned = scan_arguments({"--nnodes", "2", "p"}, false);
  add_variables(
      {"PATH=/bin", "PET_NNODES=9", "PET_NPROC_PER_NODE=3", "PET_STANDALONE=2", "PET_NO_PYTHON=0",
       "PET_UNKNOWN=1", "PET_HELP=1", "PET_NPROC_PER_NODE=5", "PET_ROLE=", "PET_"},
      scanned.settings);
  EXPECT_EQ(scanned.settings.find("nnodes")->value, "2");
  EXPECT_EQ(scanned.settings.find("nnodes")->source, Source::Flag);
  EXPECT_EQ(scanned.settings.find("nproc-per-node")->value, "3");  // as getenv: the first
  EXPECT_EQ(scanned.settings.find("nproc-per-node")->shown, "PET_NPROC_PER_NODE");
  EXPECT_EQ(scanned.settings.find("nproc-per-node")->source, Source::Variable);
  EXPECT_TRUE(scanned.settings.on("standalone"));
  EXPECT_FALSE(scanned.settings.on("no-python"));
  EXPECT_EQ(scanned.settings.find("role")->value, "");  // empty is set, as in torchrun
  EXPECT_EQ(scanned.settings.find("help"), nullptr);
}

TEST(OptionsScanTest, TorchrunsVariablesOfOtherNamesComeLast) {
  Settings settings;
  add_variables({"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=x",
                 "PET_LOG_LINE_PREFIX_TEMPLATE=y", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"},
                settings);
  EXPECT_EQ(settings.find("shutdown-timeout")->value, "7");
  EXPECT_EQ(settings.find("shutdown-timeout")->shown, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  EXPECT_EQ(settings.find("log-line-prefix-template")->value, "y");
  EXPECT_EQ(settings.find("worker-store")->value, "rank0");
  Settings others;
  add_variables({"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0"}, others);
  EXPECT_EQ(others.find("worker-store"), nullptr);
}

TEST(OptionsScanTest, ASwitchsVariableHoldsANumber) {
  for (const char* value : {"yes", "", "true", "1x", " 1"}) {
    Settings settings;
    try {
      add_variables({std::string("PET_STANDALONE=") + value}, settings);
      ADD_FAILURE() << value;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(),
                "PET_STANDALONE='" + std::string(value) + "': expected 1 (on) or 0 (off)");
    }
  }
}

TEST(OptionsScanTest, QuotingKeepsErrorsOnOneReadableLine) {
  EXPECT_EQ(quote("plain"), "'plain'");
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("a\nb\x1b[31m"), "'a\\x0ab\\x1b[31m'");
  EXPECT_THAT(quote(std::string(500, 'a')), AllOf(EndsWith("a...'"), testing::SizeIs(85)));
}

// Any words at all: options or one line and code 2, never a crash.
TEST(OptionsScanTest, NoCommandLineBreaksTheParser) {
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
                                        "--gpus",
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
