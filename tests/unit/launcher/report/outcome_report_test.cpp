#include "launcher/report/outcome_report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/log.hpp"
#include "launcher/report/gathered_ranks.hpp"
#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class OutcomeReportTest : public ::testing::Test {
 protected:
  OutcomeReportTest() {
    log::configure("drun", log::Level::Info);
    log::redirect([this](std::string line) { logged_.push_back(std::move(line)); });
  }
  ~OutcomeReportTest() override { log::redirect({}); }

  void report(const rendezvous::Outcome& outcome, const std::string& lost_logs = "") {
    report_outcome(tail_lines_, outcome, node_, lost_logs, reader_,
                   [this](std::string text) { said_.push_back(std::move(text)); });
  }

  std::size_t tail_lines_ = 20;
  Reader reader_ = Reader::User;
  NodeEnd node_;
  std::vector<std::string> logged_;
  std::vector<std::string> said_;
};

rendezvous::Outcome failure() {
  rendezvous::Outcome outcome = ended_early(rendezvous::End::Failure, 7, "");
  outcome.failure.emplace();
  outcome.failure->rank = 3;
  outcome.failure->pid = 4711;
  outcome.failure->exit_code = 7;
  outcome.failure->cause = "exit code 7";
  for (int line = 0; line < 50; ++line)
    outcome.failure->tail.push_back("line " + std::to_string(line));
  return outcome;
}

TEST_F(OutcomeReportTest, OfASuccessThereIsNothingToSay) {
  report(ended_early(rendezvous::End::Success, 0, "unused"));
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(OutcomeReportTest, AFailureIsABlockAndNoLineOfTheLog) {
  report(failure());
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("rank 3"), HasSubstr("exit code 7"),
                                       HasSubstr("line 49"), Not(HasSubstr("line 0\n")))));
  EXPECT_THAT(logged_, IsEmpty());
}

// Several agents may share a terminal.
TEST_F(OutcomeReportTest, TheBlockBeginsWithTheAgentsName) {
  log::configure("drun group 1", log::Level::Info);
  report(failure());
  EXPECT_THAT(said_, ElementsAre(StartsWith("drun group 1: job failed: rank 3")));
}

TEST_F(OutcomeReportTest, TheUserSaysHowManyLinesOfStderr) {
  tail_lines_ = 50;
  report(failure());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("line 0\n")));
}

TEST_F(OutcomeReportTest, AStopBySignalIsWhatSomebodyWishedAllElseIsAnError) {
  report(ended_early(rendezvous::End::Stopped, 128 + SIGTERM, "received SIGTERM"));
  report(ended_early(rendezvous::End::Stopped, 124, "--timeout is over"));
  report(ended_early(rendezvous::End::StoreLost, 125, "the store is gone"));
  ASSERT_EQ(logged_.size(), 3U);
  EXPECT_THAT(logged_[0], AllOf(HasSubstr("stopped: received SIGTERM"), Not(HasSubstr("error"))));
  EXPECT_THAT(logged_[1], HasSubstr("error: --timeout is over"));
  EXPECT_THAT(logged_[2], HasSubstr("error: the store is gone"));
}

TEST_F(OutcomeReportTest, WhatFailedBeforeAStopIsShownBelowIt) {
  auto outcome = failure();
  outcome.end = rendezvous::End::Stopped;
  outcome.exit_code = 128 + SIGINT;
  outcome.text = "received SIGINT";
  report(outcome);
  EXPECT_THAT(logged_, ElementsAre("drun: stopped: received SIGINT\n"));
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("drun: failed before: rank 3"),
                                       HasSubstr("exit code 7"))));
  outcome.exit_code = 124;
  outcome.text = "--timeout is over";
  report(outcome);
  EXPECT_THAT(logged_.back(), HasSubstr("error: --timeout is over"));
  EXPECT_EQ(said_.size(), 2U);
}

TEST_F(OutcomeReportTest, WhoRanAndWhoNeededSigkillIsOneLineMore) {
  node_.stopped.running = {0, 1, 2};
  node_.stopped.killed = {1};
  report(failure());
  report(ended_early(rendezvous::End::Stopped, 128 + SIGTERM, "received SIGTERM"));
  EXPECT_THAT(logged_, ElementsAre("drun: ranks 0-2 were still running; rank 1 needed SIGKILL\n",
                                   HasSubstr("stopped: received SIGTERM"),
                                   HasSubstr("ranks 0-2 were still running; rank 1")));
  logged_.clear();
  report(ended_early(rendezvous::End::Success, 0, ""));
  EXPECT_THAT(logged_, IsEmpty());
  report(ended_early(rendezvous::End::StoreLost, 125, "the store is lost"));
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("the store is lost")));
}

// It says once what the ranks of all hosts did.
TEST_F(OutcomeReportTest, AStarterIsHandedWhatTheRanksDid) {
  reader_ = Reader::Starter;
  node_.stopped.running = {0, 1, 2};
  node_.stopped.killed = {1};
  node_.stopped.succeeded = {3};
  node_.stopped.host = "node1";
  report(failure());
  EXPECT_THAT(logged_, IsEmpty());
  ASSERT_EQ(said_.size(), 2U);
  EXPECT_EQ(said_[1], packed_ranks(node_.stopped));
  said_.clear();
  report(ended_early(rendezvous::End::Success, 0, ""));
  report(ended_early(rendezvous::End::StoreLost, 125, "the store is lost"));
  EXPECT_THAT(said_, IsEmpty());
  // What each rank did has been told when the time limit was reached.
  node_.at_limit = {"rank 0: running for 3 s"};
  report(ended_early(rendezvous::End::Timeout, 124, "too late"));
  ASSERT_EQ(said_.size(), 1U);
  const auto killed = unpacked_ranks(said_[0]);
  ASSERT_TRUE(killed);
  EXPECT_THAT(killed->running, IsEmpty());
  EXPECT_THAT(killed->killed, ElementsAre(1));
  EXPECT_THAT(killed->succeeded, IsEmpty());
  // Nothing to say is nothing to hand over; and a silence is the node's own news.
  node_ = {};
  said_.clear();
  report(ended_early(rendezvous::End::Stopped, 143, "received SIGTERM"));
  EXPECT_THAT(said_, IsEmpty());
  node_.stopped.running = {4, 5};
  node_.stopped.silence = "rank 5 silent the longest, for 11.0 s";
  logged_.clear();
  report(ended_early(rendezvous::End::Stopped, 143, "received SIGTERM"));
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(logged_.back(), HasSubstr("ranks 4-5 were still running (rank 5 silent"));
}

TEST_F(OutcomeReportTest, WhoHadEndedWithZeroIsOneLineMore) {
  node_.stopped.running = {0, 1};
  node_.stopped.succeeded = {2};
  report(failure());
  EXPECT_THAT(logged_, ElementsAre("drun: ranks 0-1 were still running\n",
                                   "drun: rank 2 had ended with 0\n"));
  logged_.clear();
  report(ended_early(rendezvous::End::Success, 0, ""));
  EXPECT_THAT(logged_, IsEmpty());
  node_.at_limit = {"rank 0: running for 3 s", "rank 1: running for 3 s", "rank 2: exit code 0"};
  report(ended_early(rendezvous::End::Stopped, 124, "--timeout is over"));
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("--timeout"))) << "what each did has been said";
}

TEST_F(OutcomeReportTest, WhoSeemsToHangComesFirst) {
  auto outcome = failure();
  outcome.failure->last_words = "RuntimeError: barrier timed out";
  report(outcome);
  const std::vector<std::string> elsewhere = std::exchange(said_, {});
  node_.stopped.running = node_.stopped.silent = {2};
  node_.stopped.silent_for = "11.0 s";
  node_.stopped.few = true;
  report(outcome);
  // What follows is what a node without the suspects says: a user of several reads it once.
  ASSERT_THAT(elsewhere, ElementsAre(StartsWith("drun: job failed: rank 3 (")));
  EXPECT_THAT(said_, ElementsAre("drun: rank 2 seems to hang: when rank 3's wait timed out, it was "
                                 "still running, silent for 11.0 s\n",
                                 elsewhere.front()));
  EXPECT_THAT(logged_, IsEmpty());  // all is said of it
  node_.stopped.others_killed = 1;
  report(outcome);
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("; 1 process that the workers had started needed")));
  logged_.clear();
  node_.stopped.killed = {2};  // with its child
  report(outcome);
  EXPECT_THAT(logged_, IsEmpty());
  reader_ = Reader::Starter;
  said_.clear();
  report(outcome);
  ASSERT_EQ(said_.size(), 2U) << "nor is anything handed over";
  EXPECT_EQ(said_last(said_[1]), elsewhere.front()) << "the block comes last";
  reader_ = Reader::User;
  node_.stopped.running = {2, 4};
  report(outcome);
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("ranks 2,4 were still running")));
}

// Another host may still tell of one.
TEST_F(OutcomeReportTest, AStarterKeepsTheBlockOfATimeOutForLast) {
  reader_ = Reader::Starter;
  auto outcome = failure();
  report(outcome);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_FALSE(said_last(said_[0])) << "nobody waits for anybody";
  const std::string block = said_[0];
  outcome.failure->last_words = "RuntimeError: barrier timed out";
  said_.clear();
  report(outcome);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_EQ(said_last(said_[0]), block);
  EXPECT_FALSE(unpacked_ranks(said_[0]));
}

// The node that leaves last knows them all.
TEST_F(OutcomeReportTest, WhoSeemsToHangOnAnotherNodeIsToldToo) {
  auto outcome = failure();
  outcome.failure->last_words = "RuntimeError: barrier timed out";
  node_.stopped.running = {0};
  node_.stopped.silences = {std::chrono::milliseconds(500)};
  StoppedRanks other;
  other.running = other.silent = other.killed = {2};
  other.silences = {std::chrono::milliseconds(11'000)};
  other.silent_for = "11.0 s";
  other.few = true;
  other.host = "node1";
  node_.stopped.job_ranks = other.job_ranks = 4;
  node_.others = {other};
  report(outcome);
  EXPECT_THAT(said_, ElementsAre(StartsWith("drun: on node1, rank 2 seems to hang: "),
                                 StartsWith("drun: job failed: rank 3 (")));
  EXPECT_THAT(logged_, ElementsAre("drun: rank 0 was still running\n"));
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  EXPECT_TRUE(report_file(file, outcome, node_, true)());
  std::string json = content(file);
  std::erase_if(json, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_THAT(json, AllOf(HasSubstr(R"("ranks_still_running":[0,2],"silence_seconds":[0.5,11.0])"),
                          HasSubstr(R"("ranks_killed":[2])"),
                          HasSubstr(R"("ranks_that_seem_to_hang":[2])")));
}

// The file is for programs.
TEST_F(OutcomeReportTest, ColourIsForTheTerminalOnly) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  node_.stopped.running = {0, 1};
  node_.stopped.silence = "rank 1 silent the longest, for 9 s";
  log::use_color(true);
  report(failure());
  EXPECT_TRUE(report_file(file, failure(), node_, true)());
  log::use_color(false);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("drun: \033[31mjob failed: rank 3")));
  EXPECT_THAT(logged_,
              ElementsAre(HasSubstr("drun: \033[33mranks 0-1 were still running (rank 1")));
  EXPECT_THAT(content(file), Not(HasSubstr("\\u001b")));
}

TEST_F(OutcomeReportTest, WhoRanIsNoNewsIfAnotherCouldNotBeStarted) {
  node_.stopped.running = {0, 1, 2};
  auto outcome = failure();
  outcome.failure->pid = 0;
  report(outcome);
  EXPECT_THAT(logged_, IsEmpty());
}

// What each did then has been said.
TEST_F(OutcomeReportTest, AtATimeLimitOnlyWhoNeededSigkillIsNews) {
  node_.at_limit = {"rank 0: running for 3 s", "rank 1: running for 3 s"};
  node_.stopped.running = {0, 1};
  report(ended_early(rendezvous::End::Stopped, 124, "--timeout is over"));
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("--timeout is over")));
  node_.stopped.killed = {1};
  report(ended_early(rendezvous::End::Stopped, 124, "--timeout is over"));
  EXPECT_THAT(logged_.back(), HasSubstr("drun: rank 1 needed SIGKILL"));
}

TEST_F(OutcomeReportTest, LogsThatAreNotCompleteAreNamed) {
  report(ended_early(rendezvous::End::Success, 0, ""), "/logs/0 may not be complete");
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("warning: /logs/0 may not be complete")));
}

TEST_F(OutcomeReportTest, TheReportFileIsWrittenIfOneIsAskedFor) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  EXPECT_TRUE(report_file(file, failure(), node_, true)());
  EXPECT_THAT(content(file), HasSubstr("exit code 7"));
  const auto failed = report_file(folder.root() + "/gone/report.json", failure(), node_, true)();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().what(), HasSubstr("/gone/report.json: "));
  EXPECT_FALSE(report_file("", failure(), node_, true));
}

TEST_F(OutcomeReportTest, WhileTheJobRunsTheReportFileSaysNothingElse) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  EXPECT_TRUE(report_file(file, failure(), node_, true)());
  EXPECT_TRUE(running_report(file)());
  EXPECT_THAT(content(file), AllOf(HasSubstr(R"("result": "running")"),
                                   HasSubstr(R"("exit_code": null)"), Not(HasSubstr("rank 3"))));
  EXPECT_FALSE(running_report(""));
}

TEST_F(OutcomeReportTest, APipeGetsTheEndOnlyAndAFolderIsRefusedAtOnce) {
  const test::FileTree folder;
  const std::string pipe = folder.root() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(running_report(pipe)()) << "nobody reads it yet";
  const auto written = running_report(folder.root())();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what(), HasSubstr("Is a directory"));
}

// "/dev/stderr", which may be a file: its name must stay what it is.
TEST_F(OutcomeReportTest, WhatIsOpenAlreadyGetsTheEndAfterWhatItHas) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/stderr";
  const FileDescriptor open(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(open.get(), "before\n", 7), 7);
  const std::string name = "/proc/self/fd/" + std::to_string(open.get());
  EXPECT_TRUE(running_report(name)());
  EXPECT_EQ(content(file), "before\n");
  EXPECT_TRUE(report_file(name, failure(), node_, false)());
  EXPECT_THAT(content(file), AllOf(StartsWith("before\n{"), HasSubstr("exit code 7")));
}

// Several agents may write the same file.
TEST_F(OutcomeReportTest, WhoDoesNotKnowTheEndReplacesNobodyWhoDoes) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  const auto lost = ended_early(rendezvous::End::StoreLost, 125, "the store is gone");
  const auto write = [&](const std::string& present) {
    std::ofstream(file) << present;
    EXPECT_TRUE(report_file(file, lost, node_, false)());
    return content(file);
  };
  for (const char* result : {"success", "failure", "stopped", "timeout", "nodes lost"}) {
    const std::string present = std::string(R"({"result": ")") + result + "\"}";
    EXPECT_EQ(write(present), present);
  }
  for (const char* present : {R"({"result": "running"})", R"({"result": "store lost"})",
                              R"({"result": "refused"})", R"({"result": 7})", "[]", "no JSON", ""})
    EXPECT_THAT(write(present), HasSubstr("store lost")) << present;
  std::filesystem::remove(file);
  EXPECT_TRUE(report_file(file, lost, node_, false)());
  EXPECT_THAT(content(file), HasSubstr("store lost"));
  EXPECT_TRUE(report_file(file, failure(), node_, true)());
  EXPECT_TRUE(report_file(file, ended_early(rendezvous::End::Success, 0, ""), node_, true)());
  EXPECT_THAT(content(file), HasSubstr("success")) << "who knows it replaces whatever is there";
}

TEST_F(OutcomeReportTest, AnEndBeforeTheBeginningIsReportedToo) {
  const test::FileTree folder;
  const std::string file = folder.root() + "/report.json";
  report_early(file, 127, "cannot exec ./nothere");
  EXPECT_THAT(content(file), AllOf(HasSubstr(R"("result": "failure")"), HasSubstr("127"),
                                   HasSubstr("./nothere"), HasSubstr(R"("failure": null)")));
  report_early("", 127, "no file is asked for");
  EXPECT_THAT(logged_, IsEmpty());
  report_early(folder.root() + "/gone/report.json", 127, "");
  EXPECT_THAT(logged_, ElementsAre(HasSubstr("error: --report: write ")));
}

// ---- for a launcher above drun ----

class ForwardedErrorTest : public OutcomeReportTest {
 protected:
  ForwardedErrorTest() {
    files_.write("/worker.json", R"({"message": {"message": "ValueError: 42"}})");
  }
  [[nodiscard]] std::string path(const std::string& name) const { return files_.root() + name; }

  test::FileTree files_;
};

TEST_F(ForwardedErrorTest, TheWorkersFileIsPassedOnWithItsCode) {
  const std::vector<std::string> inherited{"TORCHELASTIC_ERROR_FILE=" + path("/own.json")};
  EXPECT_TRUE(forwarded_error_file(inherited, *failure().failure, path("/worker.json"))());
  EXPECT_THAT(content(path("/own.json")), AllOf(HasSubstr("ValueError: 42"), HasSubstr("7")));

  auto killed = *failure().failure;
  killed.signal = SIGSEGV;
  EXPECT_TRUE(forwarded_error_file(inherited, killed, path("/worker.json"))());
  EXPECT_THAT(content(path("/own.json")), HasSubstr("-11"));
}

TEST_F(ForwardedErrorTest, NothingHappensWithoutALauncherAboveOrAFileOfTheWorkers) {
  const auto failed = *failure().failure;
  EXPECT_FALSE(forwarded_error_file({}, failed, path("/worker.json")));
  EXPECT_FALSE(forwarded_error_file({"TORCHELASTIC_ERROR_FILE="}, failed, path("/worker.json")));
  const std::vector<std::string> inherited{"TORCHELASTIC_ERROR_FILE=" + path("/own.json")};
  EXPECT_FALSE(forwarded_error_file(inherited, failed, ""));
  EXPECT_TRUE(forwarded_error_file(inherited, failed, path("/none.json"))());
  EXPECT_FALSE(std::filesystem::exists(path("/own.json")));
}

TEST_F(ForwardedErrorTest, WhatCannotBeWrittenIsAnError) {
  const auto written = forwarded_error_file({"TORCHELASTIC_ERROR_FILE=" + path("/gone/own.json")},
                                            *failure().failure, path("/worker.json"))();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().what(), HasSubstr("/gone/own.json"));
}

}  // namespace
}  // namespace drun::launcher
