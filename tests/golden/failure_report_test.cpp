// What users see when a job fails, byte by byte. DRUN_UPDATE_GOLDEN=1 writes the files anew.
#include "launcher/report/failure_report.hpp"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "launcher/report/hang_suspicion.hpp"
#include "support/places.hpp"

namespace drun::launcher {
namespace {

using rendezvous::FailureSummary;

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = places::source("tests/golden/failure_report/") + name;
  if (std::getenv("DRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(expected.empty()) << path;
  EXPECT_EQ(text, expected);
}

FailureSummary failure() {
  FailureSummary root;
  root.rank = 3;
  root.local_rank = 1;
  root.group_rank = 1;
  root.host = "node1";
  root.pid = 4711;
  root.exit_code = 7;
  root.cause = "exit code 7";
  root.time_ms = 1795191822123;
  root.uptime_ms = 12'340;
  return root;
}

std::string python_traceback() {
  return "Traceback (most recent call last):\n"
         "  File \"/srv/app/train.py\", line 12, in main\n"
         "    raise ValueError(f\"bad value {x}\")\n"
         "ValueError: bad value 42\n";
}

TEST(FailureReportGolden, ExitWithoutAWord) {
  expect_golden("silent.txt", render_failure(failure(), {}, {}));
}

TEST(FailureReportGolden, LastWordsAndOtherRanks) {
  FailureSummary root = failure();
  root.tail = {"loading data", "train: cannot open shard 17: No such file or directory"};
  root.log_file = "/logs/job_ab12cd34/attempt_0/1/stderr.log";
  root.last_words = root.tail[1];
  root.others = {{{{1, 2}}, "exit code 7", root.tail[1]},
                 {{{6, 6}}, "killed by SIGABRT", "double free"}};
  expect_golden("stderr.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, ATracebackThatStderrRepeats) {
  FailureSummary root = failure();
  root.exit_code = 1;
  root.cause = "exit code 1";
  root.traceback = python_traceback();
  root.tail = {"Traceback (most recent call last):",
               "  File \"/srv/app/train.py\", line 20, in <module>",
               "    main()",
               "  File \"/usr/lib/torch/errors/__init__.py\", line 355, in wrapper",
               "    return f(*args, **kwargs)",
               "  File \"/srv/app/train.py\", line 12, in main",
               "    raise ValueError(f\"bad value {x}\")",
               "ValueError: bad value 42"};
  expect_golden("traceback.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, ARankThatSeemsToHang) {
  FailureSummary root = failure();
  root.last_words = "RuntimeError: barrier timed out";
  root.tail = {"epoch 3", root.last_words};
  root.others = {{{{0, 1}}, "exit code 7", root.last_words}};
  StoppedRanks stopped;
  stopped.running = stopped.silent = stopped.killed = {2};
  stopped.silent_for = "11.0 s";
  stopped.few = true;
  expect_golden("hang.txt",
                render_suspicion(suspect_hang(root, stopped).value_or(Suspicion()).text, {}) +
                    render_failure(root, {"no restart of 3 is left"}, {}));
  rendezvous::Outcome outcome;
  outcome.end = rendezvous::End::Failure;
  outcome.exit_code = 7;
  outcome.failure = root;
  expect_golden("hang.json", render_report_json(outcome, {{}, stopped}));
}

// As newer versions of torch print it.
TEST(FailureReportGolden, ATracebackThatStderrRepeatsWithTheRank) {
  FailureSummary root = failure();
  root.exit_code = 1;
  root.cause = "exit code 1";
  root.traceback = python_traceback();
  root.tail = {"epoch 3",
               "[rank3]: Traceback (most recent call last):",
               "[rank3]:   File \"/srv/app/train.py\", line 20, in <module>",
               "[rank3]:     main()",
               "[rank3]:   File \"/srv/app/train.py\", line 12, in main",
               "[rank3]:     raise ValueError(f\"bad value {x}\")",
               "[rank3]: ValueError: bad value 42"};
  expect_golden("traceback_of_rank.txt", render_failure(root, {}, {}));
}

// Its end is cut where it is read, and once more here, behind a mark or not; it was logged before;
// and the error file ends with words of its own.
TEST(FailureReportGolden, ATracebackIsThereOnceHoweverItEnds) {
  FailureSummary root = failure();
  root.traceback = python_traceback();
  root.traceback += std::string(700, 'x') + "\n";
  root.tail = {"[rank3]: Traceback (most recent call last):",
               "[rank3]:   File \"/srv/app/train.py\", line 12, in main",
               "[rank3]: ValueError: bad value 42"};
  const std::string twice = render_failure(root, {}, {});
  EXPECT_EQ(twice.find("stderr"), std::string::npos) << twice;
  root.traceback =
      "Traceback (most recent call last):\nValueError: " + std::string(700, 'x') + "\n";
  root.tail = {"Traceback (most recent call last):",
               "ValueError: " + std::string(500, 'x') + "... (200 bytes more)", "cleaning up",
               "[rank3]: Traceback (most recent call last):",
               "[rank3]: ValueError: " + std::string(491, 'x') + "... (209 bytes more)"};
  const std::string long_end = render_failure(root, {}, {});
  EXPECT_NE(long_end.find("stderr:\n  | cleaning up\n"), std::string::npos) << long_end;
}

TEST(FailureReportGolden, ATracebackAndOtherWords) {
  FailureSummary root = failure();
  root.traceback = python_traceback();
  root.tail = {"epoch 3",
               "warning: loss is not finite",
               "Traceback (most recent call last):",
               "  File \"/srv/app/train.py\", line 12, in main",
               "    raise ValueError(f\"bad value {x}\")",
               "ValueError: bad value 42",
               "cleaning up"};
  expect_golden("traceback_and_stderr.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, ACrashWithACore) {
  FailureSummary root = failure();
  root.exit_code = 0;
  root.signal = 11;
  root.cause = "killed by SIGSEGV (core dumped)";
  root.core_file = "/srv/app/core.4711";
  root.uptime_ms = 230;
  expect_golden("core.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, OutOfMemory) {
  FailureSummary root = failure();
  root.signal = 9;
  root.cause = "killed: out of memory (limit 512 MiB)";
  root.uptime_ms = 4'000'000;
  root.others = {{{{0, 0}}, "killed: out of memory", ""}};
  expect_golden("memory.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, CannotRun) {
  FailureSummary root = failure();
  root.rank = root.local_rank = 0;
  root.pid = 0;
  root.exit_code = 127;
  root.cause = "cannot run ./train: No such file or directory";
  expect_golden("cannot_run.txt", render_failure(root, {}, {}));
}

TEST(FailureReportGolden, MoreThanAScreen) {
  FailureSummary root = failure();
  root.traceback = "Traceback (most recent call last):\n";
  for (int i = 0; i < 40; ++i)
    root.traceback += "  File \"deep.py\", line " + std::to_string(i) + ", in f\n";
  root.traceback += "RecursionError: maximum recursion depth exceeded\n";
  for (int i = 0; i < 20; ++i)
    root.tail.push_back("step " + std::to_string(i));
  for (int i = 0; i < 30; ++i)
    root.others.push_back({{{i + 4, i + 4}}, "exit code " + std::to_string(i + 1), ""});
  expect_golden(
      "screen.txt",
      render_failure(
          root,
          {"crash loop: rank 3 ended in the same way 4 times in a row within seconds of its "
           "start"},
          {}));
}

TEST(FailureReportGolden, Json) {
  rendezvous::Outcome outcome;
  outcome.end = rendezvous::End::Failure;
  outcome.exit_code = 7;
  outcome.text = "rank 3 failed";
  outcome.failure = failure();
  outcome.failure->tail = {"last words \xff"};
  outcome.failure->last_words = "last words";
  outcome.failure->others = {{{{0, 0}}, "exit code 1", ""},
                             {{{1, 1}}, "exit code 7", "last words"}};
  outcome.notes = {"no restart of 3 is left"};
  NodeEnd node;
  node.files = {{"/logs/job_ab12cd34/stacks_1.txt"}, {"/tmp/trace_2", "/tmp/trace_3"}};
  node.stopped.running = {0, 2, 4, 5};
  node.stopped.silences = {std::chrono::milliseconds(520), std::chrono::milliseconds(11'040),
                           std::nullopt, std::chrono::milliseconds(0)};
  node.stopped.killed = {2};
  node.stopped.succeeded = {6, 7};
  expect_golden("report.json", render_report_json(outcome, node));
}

TEST(FailureReportGolden, JsonOfASuccess) {
  const rendezvous::Outcome timeout{rendezvous::End::Stopped, 124, "--timeout is over", {}, {}};
  expect_golden(
      "timeout.json",
      render_report_json(
          timeout,
          {{"rank 0: exit code 0", "rank 1 (pid 7): running for 2.9 s, silent for 2.1 s"}, {}}));
  expect_golden("success.json", render_report_json({}, {}));
}

TEST(FailureReportGolden, JsonOfAJobThatLostNodes) {
  const rendezvous::Outcome lost{rendezvous::End::NodesLost, 125, "b is gone", {}, {}};
  EXPECT_EQ(nlohmann::json::parse(render_report_json(lost, {}))["result"], "nodes lost");
}

TEST(FailureReportGolden, JsonIsJsonWhateverTheWorkersSay) {
  rendezvous::Outcome outcome;
  outcome.end = rendezvous::End::Failure;
  outcome.failure = failure();
  std::string all;
  for (int c = 0; c < 256; ++c)
    all += static_cast<char>(c);
  outcome.failure->traceback = outcome.failure->cause = outcome.failure->host = all;
  outcome.failure->others = {{{{1, 1}}, all, all}};
  outcome.notes = {all};
  const auto json = nlohmann::json::parse(render_report_json(outcome, {}), nullptr, false);
  EXPECT_FALSE(json.is_discarded());
}

}  // namespace
}  // namespace drun::launcher
