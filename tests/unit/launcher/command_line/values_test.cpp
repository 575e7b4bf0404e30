// What values mean, and which are refused with which words.
#include "launcher/command_line/values.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/options/replica_group.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Options build(const std::string& flags, const std::vector<std::string>& environment = {}) {
  const cli::Program program = drun_program(false);
  cli::CommandLine line = cli::parse_command_line(program, test::words(flags + " ./program"));
  (void)cli::add_variables(program, environment, line.flags);
  const Host machine = test::made_up_machine();
  return build_options({line.flags, line.words, environment, machine, false});
}

std::string error_of(const std::string& line, const std::vector<std::string>& environment = {}) {
  try {
    (void)build(line, environment);
  } catch (const cli::UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

// What this machine is asked for.
PlacementRequest requested(const std::string& line) {
  PlacementRequest result;
  Host machine = test::made_up_machine();
  machine.place_workers = [&result](const PlacementRequest& request,
                                    const std::vector<std::string>& environment) {
    result = request;
    return place_workers(request, test::made_up_facts(), environment);
  };
  auto arguments = test::words(line + " ./p");
  arguments.insert(arguments.begin(), "drun");
  (void)parse_options(arguments, {}, machine);
  return result;
}

Options build_one(const std::string& flag, const std::string& value,
                  const std::string& endpoint = "h") {
  const cli::CommandLine line = cli::parse_command_line(
      drun_program(false), {"--rdzv-endpoint", endpoint, flag, value, "./program"});
  return build_options({line.flags, line.words, {}, test::made_up_machine(), false});
}

// As torchrun has it: int() and float() of Python do not mind them.
TEST(OptionValuesTest, BlanksAroundANumberDoNotMatter) {
  for (const std::string before : {"", " ", "\t"}) {
    for (const std::string after : {"", "  ", "\n", "\r"}) {
      SCOPED_TRACE(testing::PrintToString(before + "N" + after));
      EXPECT_EQ(build_one("--nnodes", before + "1:" + before + "3" + after).max_nodes, 3);
      EXPECT_EQ(build_one("--role", "r", before + "host:1234" + after).endpoint.port, 1234);
      EXPECT_EQ(build_one("--nproc-per-node", before + "2" + after).nproc_per_node, 2);
      EXPECT_EQ(build_one("--max-restarts", before + "4" + after).max_restarts, 4);
      EXPECT_EQ(build_one("--master-port", before + "2950" + after).master_port, 2950);
      EXPECT_THAT(
          build_one("--local-ranks-filter", "0," + before + "0" + after).output.local_ranks_filter,
          testing::Optional(ElementsAre(0, 0)));
      EXPECT_EQ(build_one("--shutdown-timeout", before + "5" + after).shutdown_timeout.count(),
                5000);
    }
  }
}

// TorchX starts its jobs so.
TEST(OptionValuesTest, ARoleMayBeEmpty) {
  EXPECT_EQ(build_one("--role", "").role, "");
}

TEST(OptionValuesTest, NodesAreANumberOrARange) {
  for (const auto& [text, low, high] :
       {std::tuple{"1", 1, 1}, {"7", 7, 7}, {"1:1", 1, 1}, {"2:8", 2, 8}, {"+3", 3, 3}}) {
    const Options options = build("--rdzv-endpoint h --nnodes " + std::string(text));
    EXPECT_EQ(options.min_nodes, low) << text;
    EXPECT_EQ(options.max_nodes, high) << text;
  }
  EXPECT_EQ(error_of("--nnodes 0"), "--nnodes '0': at least one node must take part");
  EXPECT_EQ(error_of("--nnodes -1"), "--nnodes '-1': at least one node must take part");
  EXPECT_EQ(error_of("--nnodes 0:2"), "--nnodes '0:2': at least one node must take part");
  EXPECT_EQ(error_of("--nnodes 3:2"), "--nnodes '3:2': MIN is greater than MAX");
  EXPECT_EQ(error_of("--nnodes 1:2:3:4"),
            "--nnodes '1:2:3:4': expected N, MIN:MAX or MIN:MAX:STEP");
  EXPECT_EQ(error_of("--nnodes 200000"), "--nnodes '200000': at most 100000 nodes");
  for (const char* bad : {"abc", "1:", ":2", "1.5", "1 2", " ", "0x2", "99999999999999999999", ":",
                          "4:16:", "4::4", "4:16:x"}) {
    const cli::Setting setting{drun_program(false).find("nnodes"), cli::Source::Flag, "--nnodes",
                               bad};
    try {
      (void)parse_nodes(setting);
      ADD_FAILURE() << bad;
    } catch (const cli::UsageError& error) {
      EXPECT_EQ(error.what(), "--nnodes '" + std::string(bad) +
                                  "': expected N, MIN:MAX or MIN:MAX:STEP, all whole numbers");
    }
  }
  // Kubeflow's operator leaves some empty.
  EXPECT_EQ(build("", {"PET_NNODES=", "PET_STANDALONE="}).max_nodes, 1);
}

TEST(OptionValuesTest, NodesMayComeInSteps) {
  const Options options = build("--rdzv-endpoint h --nnodes 4:16:4");
  EXPECT_EQ(options.min_nodes, 4);
  EXPECT_EQ(options.max_nodes, 16);
  EXPECT_EQ(options.node_step, 4);
  EXPECT_EQ(build("--rdzv-endpoint h --nnodes 3:16:1").node_step, 1);
  EXPECT_EQ(build("--rdzv-endpoint h --nnodes 3:16").node_step, 1);
  const std::string wrong = ": MIN and MAX must be multiples of the step ";
  EXPECT_EQ(error_of("--nnodes 4:18:4"), "--nnodes '4:18:4'" + wrong + "4: say 4:16:4");
  EXPECT_EQ(error_of("--nnodes 1:16:4"), "--nnodes '1:16:4'" + wrong + "4: say 4:16:4");
  EXPECT_EQ(error_of("--nnodes 1:2:3"), "--nnodes '1:2:3'" + wrong + "3: say 3:3:3");
  EXPECT_EQ(error_of("--nnodes 1:2:0"), "--nnodes '1:2:0': a step is one node at least");
  EXPECT_EQ(error_of("--nnodes 4:16:-4"), "--nnodes '4:16:-4': a step is one node at least");
}

TEST(OptionValuesTest, WorkersAreANumberOrCounted) {
  EXPECT_EQ(build("--nproc-per-node 8").nproc_per_node, 8);
  EXPECT_EQ(build("--nproc-per-node auto").nproc_per_node, 4);
  EXPECT_EQ(build("--nproc-per-node gpu").nproc_per_node, 4);
  EXPECT_EQ(build("--nproc-per-node cpu").nproc_per_node, 12);
  EXPECT_EQ(error_of("--nproc-per-node xpu"), "--nproc-per-node 'xpu': no Intel GPU found");
  for (const char* bad : {"0", "-1", "99999"}) {
    EXPECT_EQ(
        error_of("--nproc-per-node " + std::string(bad)),
        "--nproc-per-node '" + std::string(bad) + "': expected a whole number from 1 to 10000");
  }
  for (const char* bad : {"bogus", "1.5", "4x", "GPU"}) {
    EXPECT_EQ(error_of("--nproc-per-node " + std::string(bad)),
              "--nproc-per-node '" + std::string(bad) +
                  "': expected a whole number of at least 1, auto, cpu, gpu or xpu");
  }
}

TEST(OptionValuesTest, NamesOfSharedMemoryAreThoseOfItsFolder) {
  using testing::ElementsAre;
  EXPECT_THAT(build("").keep_shm, testing::IsEmpty());
  EXPECT_THAT(build("--keep-shm psm_* --keep-shm /ckpt_? --keep-shm /dev/shm/nccl-*").keep_shm,
              ElementsAre("psm_*", "ckpt_?", "nccl-*"));
  for (const char* bad : {"a/b", "/dev/shm/", "/", "/tmp/x"}) {
    EXPECT_EQ(error_of("--keep-shm " + std::string(bad)),
              "--keep-shm '" + std::string(bad) +
                  "': expected a name in /dev/shm, or a pattern such as 'psm_*'");
  }
  EXPECT_EQ(error_of("--keep-shm psm_*,nccl-*"),
            "--keep-shm 'psm_*,nccl-*': one pattern; give the flag once for each");
}

TEST(OptionValuesTest, AReplicaGroupKeepsWhatOthersMayHaveHandedIt) {
  auto options = build("--keep-shm ckpt");
  belong_to_group(options, 1);
  EXPECT_THAT(options.keep_shm, testing::ElementsAre("ckpt", "torch_*", "psm_*", "sem.mp-*"));
}

TEST(OptionValuesTest, RestartsAndLocalNodesAreWholeNumbers) {
  EXPECT_EQ(build("--max-restarts 3").max_restarts, 3);
  EXPECT_EQ(build("").max_losses, std::nullopt);
  EXPECT_EQ(build("--max-losses 0").max_losses, 0);
  EXPECT_EQ(build("").min_runtime, std::chrono::milliseconds(0));
  EXPECT_EQ(build("--min-runtime 0").min_runtime, std::chrono::milliseconds(0));
  EXPECT_EQ(build("--min-runtime 1m30s").min_runtime, std::chrono::seconds(90));
  EXPECT_EQ(error_of("--min-runtime soon"),
            "--min-runtime 'soon': expected a time such as 90 (seconds), 5m or 1h30m");
  EXPECT_EQ(build("--max-restarts 2147483647").max_restarts, 2147483647);
  for (const char* bad : {"-1", "x", "1.0", "2147483648", "''"}) {
    EXPECT_EQ(error_of("--max-restarts " + std::string(bad)),
              "--max-restarts '" + std::string(bad) + "': expected a whole number of at least 0");
  }
  EXPECT_EQ(build("--local-nodes 5").local_nodes, 5);
  EXPECT_EQ(error_of("--local-nodes 0"),
            "--local-nodes '0': expected a whole number from 1 to 10000");
}

TEST(OptionValuesTest, PreflightSaysIfItHasNothingToCompare) {
  const std::string several = "--nnodes 2 --rdzv-endpoint h:1 ";
  EXPECT_EQ(build(several).preflight, Preflight::Warn);
  EXPECT_EQ(build(several + "--preflight off").preflight, Preflight::Off);
  EXPECT_EQ(build(several + "--preflight strict").preflight, Preflight::Strict);
  EXPECT_TRUE(compares_facts(build(several)));
  EXPECT_TRUE(build(several + "--preflight warn").notes.empty());
  EXPECT_FALSE(compares_facts(build("--local-nodes 2")));
  EXPECT_TRUE(build("--local-nodes 2").notes.empty());
  EXPECT_EQ(
      build("--preflight warn").notes,
      std::vector<std::string>{"--preflight warn has nothing to compare: the job has one node"});
  EXPECT_EQ(build("--local-nodes 2 --preflight strict").notes,
            std::vector<std::string>{
                "--preflight strict has nothing to compare: all nodes are this machine"});
  EXPECT_EQ(error_of("--preflight maybe"), "--preflight 'maybe': expected off, warn or strict");
}

TEST(OptionValuesTest, BadNodesAreExcludedAfterTwoRestarts) {
  EXPECT_EQ(build("").exclude_after, 2);
  EXPECT_EQ(build("--exclude-after 0").exclude_after, 0);
  EXPECT_EQ(error_of("--exclude-after -1"),
            "--exclude-after '-1': expected a whole number of at least 0");
  EXPECT_EQ(build("--exclude-file /nfs/bad").exclude_file, "/nfs/bad");
  EXPECT_EQ(error_of("--exclude-file="), "--exclude-file '': expected the name of a file");
}

TEST(OptionValuesTest, TimesHaveUnits) {
  const std::pair<const char*, long> cases[] = {
      {"90", 90'000},      {"1.5", 1'500},       {"0.001", 1},        {"90s", 90'000},
      {"5m", 300'000},     {"1h30m", 5'400'000}, {"1h30", 0},         {"250ms", 250},
      {"1m500ms", 60'500}, {"2d", 172'800'000},  {"1.5h", 5'400'000}, {".5m", 30'000},
  };
  for (const auto& [text, expected] : cases) {
    if (expected == 0) continue;
    EXPECT_EQ(build("--timeout " + std::string(text)).timeout->count(), expected) << text;
    EXPECT_EQ(build("--start-timeout " + std::string(text)).start_timeout->count(), expected);
    EXPECT_EQ(build("--shutdown-timeout " + std::string(text)).shutdown_timeout.count(), expected);
  }
  for (const char* bad : {"x", "5x", "-5", "1h30", "m", "1e3", "nan", "1:30", "5 m", "1..5"}) {
    const cli::Setting setting{drun_program(false).find("timeout"), cli::Source::Flag, "--timeout",
                               bad};
    try {
      (void)parse_duration(setting, false);
      ADD_FAILURE() << bad;
    } catch (const cli::UsageError& error) {
      EXPECT_EQ(error.what(), "--timeout '" + std::string(bad) +
                                  "': expected a time such as 90 (seconds), 5m or 1h30m");
    }
  }
  EXPECT_EQ(error_of("--timeout 0"), "--timeout '0': expected a time greater than zero");
  EXPECT_EQ(error_of("--timeout 99999999999999d"), "--timeout '99999999999999d': that is too long");
  EXPECT_EQ(error_of("--timeout 11575d"), "--timeout '11575d': that is too long");
  EXPECT_FALSE(build("").timeout);
  EXPECT_FALSE(build("").start_timeout);
}

TEST(OptionValuesTest, TheShutdownTimeoutHasAVariableOfItsOwn) {
  EXPECT_EQ(build("").shutdown_timeout.count(), 30'000);
  EXPECT_EQ(build("--shutdown-timeout 0").shutdown_timeout.count(), 0);
  EXPECT_EQ(build("", {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"}).shutdown_timeout.count(), 7'000);
  EXPECT_EQ(build("", {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7", "PET_SHUTDOWN_TIMEOUT=8"})
                .shutdown_timeout.count(),
            8'000);
  EXPECT_EQ(
      build("--shutdown-timeout 9", {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"}).shutdown_timeout.count(),
      9'000);
  EXPECT_EQ(error_of("", {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=-1"}),
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT '-1': expected a time such as 90 (seconds), 5m or "
            "1h30m");
}

TEST(OptionValuesTest, SignalsHaveNamesOrNumbers) {
  EXPECT_THAT(build("").signals_to_handle, ElementsAre(SIGTERM, SIGINT, SIGHUP));
  EXPECT_FALSE(build("").quit_stops);
  EXPECT_FALSE(build("--signals-to-handle TERM").quit_stops);
  EXPECT_TRUE(build("--signals-to-handle TERM,QUIT").quit_stops);
  EXPECT_EQ(build("").signals_to_handle_text, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  const Options options = build("--signals-to-handle SIGUSR1,term,10,2");
  EXPECT_THAT(options.signals_to_handle, ElementsAre(SIGUSR1, SIGTERM, SIGINT));
  EXPECT_EQ(options.signals_to_handle_text, "SIGUSR1,term,10,2");
  EXPECT_THAT(build("--signals-to-handle=").signals_to_handle, IsEmpty());
  EXPECT_THAT(build("").forward_signals, ElementsAre(SIGUSR1, SIGUSR2));
  EXPECT_THAT(build("--forward-signals=").forward_signals, IsEmpty());
  EXPECT_THAT(build("--signals-to-handle TERM,USR1").forward_signals, ElementsAre(SIGUSR2));
  EXPECT_THAT(build("--forward-signals TERM").signals_to_handle, ElementsAre(SIGINT, SIGHUP));
  EXPECT_EQ(build("").stop_signal, std::nullopt);
  EXPECT_FALSE(build("").leave_on_sigterm);
  EXPECT_TRUE(build("--nnodes 1:2 --rdzv-endpoint h").leave_on_sigterm);
  EXPECT_FALSE(build("--nnodes 1:2 --standalone").leave_on_sigterm);
  EXPECT_FALSE(build("--nnodes 1:2 --rdzv-endpoint h --on-sigterm stop").leave_on_sigterm);
  EXPECT_TRUE(build("--nnodes 2 --rdzv-endpoint h --on-sigterm leave").leave_on_sigterm);
  EXPECT_EQ(error_of("--on-sigterm x"), "--on-sigterm 'x': expected leave or stop");
  EXPECT_EQ(build("--stop-signal INT").stop_signal, SIGINT);
  EXPECT_EQ(build("--stop-signal KILL").stop_signal, SIGKILL);
  EXPECT_EQ(error_of("--signals-to-handle SIGFOO"),
            "--signals-to-handle 'SIGFOO': there is no signal 'SIGFOO'; expected names such as "
            "SIGTERM,SIGUSR1");
  EXPECT_EQ(error_of("--signals-to-handle SIGTERM,"),
            "--signals-to-handle 'SIGTERM,': there is no signal ''; expected names such as "
            "SIGTERM,SIGUSR1");
  EXPECT_EQ(error_of("--signals-to-handle SIGKILL"),
            "--signals-to-handle 'SIGKILL': no program can catch SIGKILL");
  EXPECT_EQ(error_of("--forward-signals STOP"),
            "--forward-signals 'STOP': no program can catch SIGSTOP");
  EXPECT_EQ(error_of("--stop-signal 99"),
            "--stop-signal '99': expected a signal such as SIGTERM or SIGINT");
  EXPECT_EQ(error_of("--stop-signal CONT"), "--stop-signal 'CONT': SIGCONT does not end a process");
}

TEST(OptionValuesTest, StacksAreShownBeforeTimeLimitsUnlessTheUserSaysOtherwise) {
  EXPECT_EQ(build("").stacks_limit.count(), 10'000);
  EXPECT_FALSE(build("").stacks_after_failure);
  EXPECT_EQ(build("--stacks-on-failure 3").stacks_limit.count(), 3'000);
  EXPECT_TRUE(build("--stacks-on-failure 3").stacks_after_failure);
  EXPECT_EQ(build("--stacks-on-failure off").stacks_limit.count(), 0);
  EXPECT_FALSE(build("--stacks-on-failure off").stacks_after_failure);
  EXPECT_EQ(error_of("--stacks-on-failure x"),
            "--stacks-on-failure 'x': expected a time such as 90 (seconds), 5m or 1h30m");
}

TEST(OptionValuesTest, AForwardedSignalNoLongerStopsTheJob) {
  const Options options = build("--forward-signals HUP");
  EXPECT_THAT(options.signals_to_handle, ElementsAre(SIGTERM, SIGINT));
  EXPECT_EQ(error_of("--forward-signals HUP --signals-to-handle TERM,HUP"),
            "--forward-signals 'HUP': SIGHUP is in --signals-to-handle too");
}

TEST(OptionValuesTest, AWarningHasASignalAndATime) {
  EXPECT_FALSE(build("").warn_before);
  const auto notice = [](const std::string& value) {
    return build("--timeout 1h --warn-before " + value).warn_before;
  };
  EXPECT_EQ(notice("USR1@120"), EndNotice({SIGUSR1, std::chrono::seconds(120)}));
  EXPECT_EQ(notice("SIGTERM@1.5m"), EndNotice({SIGTERM, std::chrono::seconds(90)}));
  EXPECT_EQ(notice("12@500ms"), EndNotice({12, std::chrono::milliseconds(500)}));
  const std::string flag = "--warn-before ";
  for (const auto& [value, why] : std::vector<std::pair<std::string, std::string>>{
           {"USR1", "'USR1': expected a signal and a time, as in USR1@120"},
           {"@5", "'@5': expected one signal and a time, as in USR1@120"},
           {"USR1,USR2@5", "'USR1,USR2@5': expected one signal and a time, as in USR1@120"},
           {"FOO@5", "'FOO': there is no signal 'FOO'; expected names such as SIGTERM,SIGUSR1"},
           {"KILL@5", "'KILL': no program can catch SIGKILL"},
           {"USR1@", "'USR1@': expected a time behind the @, as in USR1@120 or USR1@5m"},
           {"USR1@0", "'USR1@0': expected a time behind the @, as in USR1@120 or USR1@5m"},
           {"USR1@-1", "'USR1@-1': expected a time behind the @, as in USR1@120 or USR1@5m"}})
    EXPECT_EQ(error_of("--timeout 1h " + flag + value), flag + why);
  EXPECT_EQ(error_of("--timeout 5 " + flag + "USR1@5"),
            flag + "'USR1@5': --timeout is not longer than that");
  EXPECT_EQ(error_of(flag + "USR1@5"),
            flag +
                "'USR1@5': nothing says when the job ends: give --timeout, or set "
                "DRUN_JOB_END_TIME to a time in Unix seconds (Slurm before 23.02, PBS and LSF "
                "tell none)");
}

TEST(OptionValuesTest, ExitSetsHoldCodesRangesAndSignals) {
  const Options options =
      build("--restart-on 1-3,137,SIGSEGV,TERM --no-restart-on 0,255 --no-requeue-on 4");
  for (int code = 0; code <= 255; ++code) {
    const bool listed = (code >= 1 && code <= 3) || code == 137;
    EXPECT_EQ(options.restart_on->contains({code, 0, false}), listed) << code;
    EXPECT_EQ(options.no_restart_on.contains({code, 0, false}), code == 0 || code == 255);
    EXPECT_EQ(options.no_requeue_on.contains({code, 0, false}), code == 4);
  }
  for (int signal = 1; signal <= 64; ++signal) {
    EXPECT_EQ(options.restart_on->contains({0, signal, false}),
              signal == SIGSEGV || signal == SIGTERM);
  }
  EXPECT_FALSE(build("").restart_on);
  EXPECT_EQ(build("").no_restart_on, ExitSet());
  for (const char* bad : {"256", "3-1", "1-", "-5", "SIGFOO", "x-y", "1-300", ""}) {
    EXPECT_EQ(error_of("--restart-on=1," + std::string(bad)),
              "--restart-on '1," + std::string(bad) + "': '" + bad +
                  "' is no exit code (0-255), range or signal; expected a list such as "
                  "1-9,137,SIGKILL");
  }
}

TEST(OptionValuesTest, StreamsAreChosenForAllOrByLocalRank) {
  for (int bits = 0; bits <= 3; ++bits) {
    const Options options = build("-r " + std::to_string(bits) + " -t" + std::to_string(bits));
    EXPECT_EQ(options.output.redirects.of(0), bits);
    EXPECT_EQ(options.output.redirects.of(77), bits);
    EXPECT_EQ(options.output.tee.none(), bits == 0);
  }
  const StreamChoice choice = build("--redirects 0:3,1:1,12:2").output.redirects;
  EXPECT_THAT(choice.by_local_rank, ElementsAre(Pair(0, 3), Pair(1, 1), Pair(12, 2)));
  EXPECT_EQ(choice.of(2), 0);
  EXPECT_FALSE(choice.none());
  EXPECT_TRUE(build("--redirects 9:0").output.redirects.none());
  for (const char* bad : {"4", "-1", "x", "0:1,x", "0:4", "1:", ":1", "0:1:2", "33"}) {
    EXPECT_EQ(error_of("--tee " + std::string(bad)),
              "--tee '" + std::string(bad) +
                  "': expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or such a number per "
                  "local rank as in 0:3,1:1");
  }
}

TEST(OptionValuesTest, OutputChoicesAreRead) {
  const Options options = build(
      "--log-dir logs --local-ranks-filter 0,2 --log-line-prefix-template [${rank}]: "
      "--duplicate-stdout-filters a,b,,c,,,d --duplicate-stderr-filters=, --timestamps "
      "--log-max-size 2M --fold --color always --tail-lines 5 --report r.json --nproc-per-node 4 "
      "--stdin 3");
  const OutputChoices& output = options.output;
  EXPECT_EQ(output.log_dir, "logs");
  EXPECT_EQ(output.local_ranks_filter, (std::vector<int>{0, 2}));
  EXPECT_EQ(output.prefix_template, "[${rank}]:");
  EXPECT_THAT(output.duplicate_stdout_filters, ElementsAre("a", "b,c,", "d"));
  EXPECT_THAT(output.duplicate_stderr_filters, IsEmpty());
  EXPECT_TRUE(output.timestamps);
  EXPECT_TRUE(output.fold);
  EXPECT_EQ(output.color, ColorChoice::Always);
  EXPECT_EQ(build("").output.color, ColorChoice::Auto);
  EXPECT_EQ(output.log_max_size, 2U << 20U);
  EXPECT_EQ(output.tail_lines, 5U);
  EXPECT_EQ(options.report_file, "r.json");
  EXPECT_EQ(options.stdin_rank, 3);
  EXPECT_EQ(build("").stdin_rank, 0);
  EXPECT_FALSE(build("--stdin none").stdin_rank);
  EXPECT_FALSE(build("").output.local_ranks_filter);
  EXPECT_EQ(build("", {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=x"}).output.prefix_template, "x");
  EXPECT_EQ(error_of("--local-ranks-filter a"),
            "--local-ranks-filter 'a': expected local ranks with commas between, as in 0,1");
  EXPECT_EQ(error_of("--stdin all"), "--stdin 'all': expected a rank or none");
  EXPECT_EQ(error_of("--stdin 1"), "--stdin '1': the job has rank 0 only");
  EXPECT_EQ(error_of("--nproc-per-node 2 --stdin 5"), "--stdin '5': the job has ranks 0 to 1 only");
  EXPECT_EQ(error_of("--local-nodes 2 --nproc-per-node 2 --stdin 4"),
            "--stdin '4': the job has ranks 0 to 3 only");
  EXPECT_EQ(build("--local-nodes 2 --nproc-per-node 2 --stdin 3").stdin_rank, 3);
  EXPECT_EQ(build("--nnodes 2 --rdzv-endpoint host:1 --stdin 5").stdin_rank, 5);
  EXPECT_EQ(error_of("--tail-lines x"),
            "--tail-lines 'x': expected a whole number from 0 to 10000");
  EXPECT_EQ(error_of("--quiet --verbose"),
            "--quiet and --verbose contradict each other: give one of them");
}

TEST(OptionValuesTest, SizesHaveUnits) {
  for (const auto& [text, bytes] : {std::pair{"1", 1ULL},
                                    {"500K", 512'000ULL},
                                    {"1k", 1024ULL},
                                    {"3G", 3ULL << 30U},
                                    {"1T", 1ULL << 40U}}) {
    EXPECT_EQ(build("--log-max-size " + std::string(text)).output.log_max_size, bytes);
  }
  for (const char* bad : {"0", "K", "-1", "1KB", "x", "1.5M"}) {
    EXPECT_EQ(
        error_of("--log-max-size " + std::string(bad)),
        "--log-max-size '" + std::string(bad) + "': expected a size such as 500K, 100M or 2G");
  }
  EXPECT_EQ(error_of("--log-max-size 9999999999T"),
            "--log-max-size '9999999999T': that is too large");
}

TEST(OptionValuesTest, WordsAreOneOfAFew) {
  EXPECT_EQ(build("").resize, rendezvous::Resize::Now);
  EXPECT_EQ(build("--resize restart").resize, rendezvous::Resize::Restart);
  EXPECT_EQ(build("").rank_order, rendezvous::RankOrder::Keep);
  EXPECT_EQ(build("--rank-order host").rank_order, rendezvous::RankOrder::Host);
  EXPECT_EQ(build("--rank-order join").rank_order, rendezvous::RankOrder::Join);
  for (const auto& [word, before, policy] :
       {std::tuple{"first-failure", "root", rendezvous::ExitCodePolicy::FirstFailure},
        std::tuple{"lowest-rank", "first", rendezvous::ExitCodePolicy::LowestRank},
        std::tuple{"highest", "max", rendezvous::ExitCodePolicy::Highest}}) {
    EXPECT_EQ(build("--exit-code-from " + std::string(word)).exit_code, policy);
    EXPECT_EQ(build("--exit-code " + std::string(before)).exit_code, policy);
  }
  EXPECT_EQ(build("--worker-store rank0").worker_store, WorkerStore::Rank0);
  EXPECT_EQ(build("--worker-store agent").worker_store, WorkerStore::Agent);
  EXPECT_EQ(build("--worker-store local").worker_store, WorkerStore::Local);
  EXPECT_EQ(requested("--gpu-ids 0").binding, NumaBinding::None);
  EXPECT_EQ(requested("--numa-binding node").binding, NumaBinding::Node);
  EXPECT_EQ(requested("--numa-binding socket").binding, NumaBinding::Socket);
  EXPECT_EQ(requested("--numa-binding exclusive").binding, NumaBinding::Exclusive);
  EXPECT_EQ(requested("--numa-binding core-complex").binding, NumaBinding::CoreComplex);
  EXPECT_EQ(error_of("--resize later"), "--resize 'later': expected now or restart");
  EXPECT_EQ(error_of("--rank-order x"), "--rank-order 'x': expected keep, host, join or topology");
  EXPECT_EQ(error_of("--exit-code-from first"),
            "--exit-code-from 'first': expected first-failure, lowest-rank or highest");
  EXPECT_EQ(error_of("--exit-code x"),
            "--exit-code 'x': expected first-failure, lowest-rank or highest");
  EXPECT_EQ(error_of("--worker-store x"), "--worker-store 'x': expected agent, local or rank0");
  EXPECT_EQ(error_of("--numa-binding x"),
            "--numa-binding 'x': expected node, socket, exclusive or core-complex");
}

TEST(OptionValuesTest, TorchsVariableChoosesTheWorkersStore) {
  const char* one = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1";
  EXPECT_EQ(build("").worker_store, WorkerStore::Agent);
  EXPECT_EQ(build("", {one}).worker_store, WorkerStore::Rank0);
  EXPECT_EQ(build("", {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0"}).worker_store, WorkerStore::Agent);
  EXPECT_EQ(build("--worker-store agent", {one}).worker_store, WorkerStore::Agent);
}

TEST(OptionValuesTest, ATokenClosesTheWorkersStoreUnlessSomebodyWantsItOtherwise) {
  const auto store = [](const std::string& line, bool has_token,
                        std::vector<std::string> environment = {}) {
    Options options = build(line, std::move(environment));
    choose_worker_store(options, has_token);
    return options.worker_store;
  };
  EXPECT_EQ(store("", true), WorkerStore::Local);
  EXPECT_EQ(store("", false), WorkerStore::Agent);
  EXPECT_EQ(store("--worker-store local", false), WorkerStore::Local);
  EXPECT_EQ(store("--worker-store agent", true), WorkerStore::Agent);
  EXPECT_EQ(store("--worker-store rank0", true), WorkerStore::Rank0);
  EXPECT_EQ(store("", true, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"}), WorkerStore::Rank0);
  EXPECT_EQ(store("--framework jax", true), WorkerStore::Rank0);
  EXPECT_EQ(store("--framework mpi", true), WorkerStore::Local);
  EXPECT_EQ(store("--replica-groups 2", true), WorkerStore::Agent);
  EXPECT_EQ(error_of("--replica-groups 2 --worker-store local"),
            "--worker-store 'local': other replica groups could not reach the store: use "
            "--worker-store agent");
}

TEST(OptionValuesTest, GpusAreChosenAmongTheVisibleOnes) {
  const auto gpus = [](const std::string& line, std::vector<std::string> environment = {}) {
    const Options options = build(line, environment);
    EXPECT_EQ(options.placement.agents.at(0).size(),
              static_cast<std::size_t>(options.nproc_per_node));
    return options.placement.of(0, 0).environment.at(0);
  };
  EXPECT_EQ(gpus("--gpu-ids 1,3"), "CUDA_VISIBLE_DEVICES=1,3");
  EXPECT_EQ(gpus("--gpu-ids 3,0"), "CUDA_VISIBLE_DEVICES=3,0");
  EXPECT_EQ(build("--gpu-ids 1,3").nproc_per_node, 2);
  EXPECT_EQ(build("--gpu-ids 1,3 --nproc-per-node gpu").nproc_per_node, 2);
  EXPECT_EQ(build("--gpu-ids 1,3 --nproc-per-node 6").nproc_per_node, 6);
  EXPECT_EQ(gpus("--gpu-ids 0,2", {"CUDA_VISIBLE_DEVICES=0, 2,3"}), "CUDA_VISIBLE_DEVICES=0,3");
  EXPECT_EQ(gpus("--gpu-ids all", {"CUDA_VISIBLE_DEVICES=2,0"}), "CUDA_VISIBLE_DEVICES=2,0");
  EXPECT_EQ(build("--gpu-ids all").nproc_per_node, 4);
  EXPECT_EQ(gpus("--include localhost:1,3"), "CUDA_VISIBLE_DEVICES=1,3");
  EXPECT_EQ(gpus("--include other:0@node7:2"), "CUDA_VISIBLE_DEVICES=2");
  EXPECT_EQ(gpus("--include node7"), "CUDA_VISIBLE_DEVICES=0,1,2,3");
  EXPECT_EQ(gpus("--exclude localhost:1"), "CUDA_VISIBLE_DEVICES=0,2,3");
  EXPECT_EQ(gpus("--exclude other:1"), "CUDA_VISIBLE_DEVICES=0,1,2,3");
  EXPECT_EQ(error_of("--gpu-ids 4"), "--gpu-ids '4': there is no GPU 4: visible are 0 to 3");
  EXPECT_EQ(error_of("", {"PET_GPU_IDS=4"}),
            "PET_GPU_IDS '4': there is no GPU 4: visible are 0 to 3");
  EXPECT_EQ(error_of("--gpu-ids="), "--gpu-ids '': expected a list such as 0,2 or localhost:0,2");
  EXPECT_EQ(error_of("--include other:1"),
            "--include 'other:1': does not name this machine (node7); localhost always does");
  EXPECT_EQ(error_of("--gpu-ids 1 --include localhost:1"),
            "--gpu-ids, --include and --exclude all choose devices: give one of them");
}

TEST(OptionValuesTest, ANumberAfterGpusIsNoCount) {
  const std::string said =
      " 3 takes the GPU with the number 3, as --gpu-ids 3 does; --nproc-per-node 3 starts 3 "
      "workers, "
      "each with a GPU of its own";
  EXPECT_EQ(build("--gpus 3").placement.of(0, 0).environment.at(0), "CUDA_VISIBLE_DEVICES=3");
  EXPECT_THAT(build("--gpus 3").notes, ElementsAre("--gpus" + said));
  EXPECT_THAT(build("--gpu 3").notes, ElementsAre("--gpu" + said));
  EXPECT_THAT(build("", {"PET_GPUS=3"}).notes, ElementsAre("PET_GPUS" + said));
  for (const char* plain : {"--gpus 0", "--gpus 1,3", "--gpus all", "--gpu-ids 3"})
    EXPECT_THAT(build(plain).notes, IsEmpty()) << plain;
  EXPECT_EQ(error_of("--gpus 4"), "--gpus '4': there is no GPU 4: visible are 0 to 3");
}

TEST(OptionValuesTest, ALabelIsTheRankBeforeEachLine) {
  const auto output = [](const std::string& line) { return build(line).output; };
  EXPECT_EQ(output("").tee.all, 0);
  EXPECT_EQ(output("--label").tee, (StreamChoice{3, {}}));
  EXPECT_EQ(output("-l").prefix_template, "${rank}: ");
  EXPECT_EQ(output("-l --log-line-prefix-template x").prefix_template, "x");
  EXPECT_EQ(output("-l --tee 1").tee, (StreamChoice{3, {}}));
  EXPECT_EQ(build("-l", {"PET_TEE=0"}).output.tee, (StreamChoice{3, {}}));
  EXPECT_EQ(output("-l -t 0:1").tee, (StreamChoice{3, {{0, 3}}}));
  EXPECT_EQ(output("-l --redirects 1:3,2:1 --log-dir d").tee, (StreamChoice{3, {{1, 0}, {2, 2}}}));
  EXPECT_EQ(output("-l -t 1:1 -r 1:3 --log-dir d").tee, (StreamChoice{3, {{1, 1}}}));
}

TEST(OptionValuesTest, TheMachineIsAskedForTheCountAsItWasGiven) {
  const std::pair<const char*, CountedBy> words[] = {{"auto", CountedBy::Auto},
                                                     {"cpu", CountedBy::Cpu},
                                                     {"gpu", CountedBy::Gpu},
                                                     {"cuda", CountedBy::Gpu},
                                                     {"xpu", CountedBy::Xpu}};
  for (const auto& [word, what] : words)
    EXPECT_EQ(requested(std::string("--nproc-per-node ") + word).devices.workers,
              WorkerCount(what));
  EXPECT_EQ(requested("--nproc-per-node 3 --gpu-ids 0").devices.workers, WorkerCount(3));
  EXPECT_EQ(requested("--gpu-ids 0").devices.workers, std::nullopt);
  EXPECT_EQ(build("--nproc-per-node 10000").nproc_per_node, 10'000);
}

TEST(OptionValuesTest, EveryVirtualRankNeedsAGpu) {
  EXPECT_TRUE(build("--virtual-local-rank --nproc-per-node 8").virtual_local_rank);
  EXPECT_EQ(error_of("--virtual-local-rank --nproc-per-node 3", {"CUDA_VISIBLE_DEVICES=0,1"}),
            "--virtual-local-rank: 3 workers need a GPU each, and CUDA_VISIBLE_DEVICES=0,1 leaves "
            "2");
  EXPECT_EQ(
      error_of("--virtual-local-rank --gpu-ids 1 --nproc-per-node 2"),
      "--virtual-local-rank: 2 workers need a GPU each, and --gpu-ids, --include or --exclude "
      "leaves 1");
}

TEST(OptionValuesTest, APlainJobAsksNothingOfTheMachine) {
  Host nobody_knows;
  const auto parsed = parse_options({"drun", "--nproc-per-node", "3", "./p"}, {}, nobody_knows);
  ASSERT_TRUE(parsed.options) << parsed.text;
  EXPECT_THAT(parsed.options->placement.agents, IsEmpty());
  EXPECT_THAT(parse_options({"drun", "--nproc-per-node", "gpu", "./p"}, {}, nobody_knows).text,
              HasSubstr("give --nproc-per-node a number"));
}

TEST(OptionValuesTest, CpusAreGivenOutToAllLocalNodes) {
  const Options options = build("--numa-binding exclusive --nproc-per-node 5 --local-nodes 2");
  EXPECT_THAT(options.placement.of(0, 0).cpus, ElementsAre(0, 1));
  EXPECT_THAT(options.placement.of(0, 4).cpus, ElementsAre(6));
  EXPECT_THAT(options.placement.of(1, 0).cpus, ElementsAre(7));
  EXPECT_THAT(options.placement.of(1, 4).cpus, ElementsAre(11));
}

TEST(OptionValuesTest, ThreadsAreANumberOrTheirShareOfTheCpus) {
  const auto automatic = [](const std::string& line) {
    const Options options = build("--omp-threads auto " + line);
    EXPECT_FALSE(options.omp_threads);
    return options.placement.of(0, 0).threads;
  };
  EXPECT_FALSE(build("--nproc-per-node 4").omp_threads);
  EXPECT_EQ(build("--omp-threads 6").omp_threads, 6);
  EXPECT_EQ(automatic(""), 12);
  EXPECT_EQ(automatic("--nproc-per-node 5"), 2);
  EXPECT_EQ(automatic("--nproc-per-node 50"), 1);
  EXPECT_EQ(automatic("--nproc-per-node 2 --local-nodes 3"), 2);
  EXPECT_EQ(automatic("--nproc-per-node 2 --numa-binding node"), 3);
  EXPECT_EQ(error_of("--omp-threads 0"),
            "--omp-threads '0': expected a whole number from 1 to 1000000");
  EXPECT_EQ(error_of("--omp-threads x"),
            "--omp-threads 'x': expected a whole number of at least 1, or auto");
}

TEST(OptionValuesTest, WhatOnlyAPythonLauncherCanDoIsAcceptedWhereThatIsHarmless) {
  const Options options = build(
      "--monitor-interval 0.5 --start-method fork --event-log-handler null --logs-specs default");
  EXPECT_THAT(options.notes, IsEmpty());
  EXPECT_THAT(build("--event-log-handler console").notes,
              ElementsAre("--event-log-handler 'console' has no effect: drun writes no torch "
                          "events"));
  for (const char* bad : {"-1", "x", "1x"}) {
    EXPECT_EQ(error_of("--monitor-interval " + std::string(bad)),
              "--monitor-interval '" + std::string(bad) +
                  "': expected a time such as 90 (seconds), 5m or 1h30m");
  }
  EXPECT_EQ(error_of("--monitor-interval 0"),
            "--monitor-interval '0': expected a time greater than zero");
  EXPECT_EQ(error_of("--start-method threads"),
            "--start-method 'threads': expected spawn, fork or forkserver");
  EXPECT_EQ(error_of("--event-log-handler x"),
            "--event-log-handler 'x': expected null, console or dynamic_rendezvous");
  EXPECT_EQ(error_of("--logs-specs mine"),
            "--logs-specs 'mine': drun cannot load Python plug-ins; --log-dir, --redirects, --tee "
            "and --log-line-prefix-template say where output goes");
}

TEST(ValuesTest, DashNIsTheNumberOfWorkersOfAJobOfOneNode) {
  EXPECT_EQ(build("-n 3").nproc_per_node, 3);
  EXPECT_EQ(build("-n 3 --nnodes 1").nproc_per_node, 3);
  EXPECT_EQ(error_of("-n x"),
            "-n 'x': expected a whole number of at least 1, auto, cpu, gpu or xpu");
  for (const char* nodes : {"--nnodes 2 --rdzv-endpoint h", "--local-nodes 2"})
    EXPECT_EQ(error_of("-n 4 " + std::string(nodes)),
              "-n '4': of each node or of the job? With several nodes say --nproc-per-node: of "
              "each node");
}

TEST(ValuesTest, FrameworksAreAList) {
  EXPECT_EQ(build("").frameworks, Frameworks());
  const Frameworks some = build("--framework mpi,oneccl").frameworks;
  EXPECT_TRUE(some.mpi && some.oneccl && !some.jax && !some.tensorflow);
  EXPECT_TRUE(build("--framework tensorflow").frameworks.tensorflow);
  EXPECT_EQ(build("--framework mpi").worker_store, WorkerStore::Agent);
  EXPECT_EQ(build("", {"PET_FRAMEWORK=jax"}).frameworks.jax, true);
  for (const char* bad : {"torch", "mpi,,jax", "MPI"})
    EXPECT_THAT(error_of("--framework " + std::string(bad)),
                HasSubstr("expected jax, mpi, oneccl or tensorflow, or several with commas"));
}

// Whose MASTER_PORT is: JAX's coordinator binds it, and MPI's nodes meet at drun's store there.
TEST(ValuesTest, FrameworksMustAgreeAboutTheMasterPort) {
  const std::string two = " --nnodes 2 --rdzv-endpoint h";
  EXPECT_EQ(build("--framework jax").worker_store, WorkerStore::Rank0);
  EXPECT_EQ(build("--framework jax --worker-store rank0").worker_store, WorkerStore::Rank0);
  for (const std::string store : {"agent", "local"})
    EXPECT_THAT(error_of("--framework jax --worker-store " + store),
                HasSubstr("JAX's coordinator needs MASTER_PORT: use --worker-store rank0"));
  EXPECT_TRUE(build("--framework jax,mpi").frameworks.mpi);
  EXPECT_THAT(error_of("--framework tensorflow --worker-store rank0" + two),
              HasSubstr("tensorflow needs drun's store at MASTER_PORT"));
  EXPECT_THAT(error_of("--framework jax,mpi" + two),
              HasSubstr("both need MASTER_PORT: give one of them"));
  EXPECT_TRUE(build("--framework mpi --worker-store rank0").frameworks.mpi);
  EXPECT_THAT(error_of("--framework mpi --worker-store rank0" + two),
              HasSubstr("mpi needs drun's store at MASTER_PORT: use --worker-store agent"));
}

}  // namespace
}  // namespace drun::launcher
