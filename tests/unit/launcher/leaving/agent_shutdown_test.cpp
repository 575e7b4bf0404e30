#include "launcher/leaving/agent_shutdown.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "launcher/report/outcome_report.hpp"
#include "support/agent_parts.hpp"
#include "support/full_pipe.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using rendezvous::End;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

rendezvous::Outcome ended(End end, int exit_code = 0) {
  return ended_early(end, exit_code, "the words");
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// An agent that can only leave.
class Leaving {
 public:
  explicit Leaving(Options options = test::lone_job(), int standard_output = -1)
      : parts(std::move(options)) {
    output_.options.standard_output = standard_output;
    if (standard_output < 0) output_.options.standard_output = output_.out.write.get();
    output_.start();
    shutdown.emplace(
        AgentShutdown::Parts{parts.io, parts.options, *output_.output, parts.status, parts.workers,
                             parts.backend, parts.events},
        AgentShutdown::Calls{[this](const std::string& request, int signal) {
                               stops.push_back(request + " " + std::to_string(signal));
                             },
                             [this](const std::string& why) { refused = why; },
                             [this](End) { return unannounced; }, [this] { gone = true; }});
    parts.on_news = [this](const WorkerNews& news, auto now) { shutdown->on_workers(news, now); };
    parts.on_event = [this](const rendezvous::KeyValueEvent& event) {
      if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event))
        said_goodbye = said_goodbye || link->link == rendezvous::Link::Closed;
      shutdown->on_event(event);
    };
    parts.workers.listen();
  }

  void join() {
    parts.backend.start();
    ASSERT_TRUE(parts.until([this] { return parts.joined; }));
  }
  // One worker runs.
  void run_worker() {
    parts.workers.start({});
    parts.runner.report(process::Spawned{1, 101});
    parts.turn();
    (void)parts.runner.take_calls();
  }
  // Nothing of the workers is left; then all that follows by itself.
  [[nodiscard]] bool leave() {
    parts.runner.report(process::Stopped{});
    return parts.until([this] { return gone; });
  }
  // drun's own output gets a line of a worker's.
  void print(const std::string& line) {
    const auto streams = output_.open(0);
    drun::test::write_all(streams.standard_output.get(), line);
  }
  [[nodiscard]] const drun::test::OutputRig& output() const { return output_; }

  test::AgentParts parts;
  std::vector<std::string> stops;  // what the job was asked
  std::string refused;             // why the job cannot be run
  bool unannounced = false;
  bool gone = false;
  bool said_goodbye = false;

 private:
  drun::test::OutputRig output_;

 public:
  std::optional<AgentShutdown> shutdown;
};

TEST(AgentShutdownTest, SweepsThenSaysGoodbyeThenIsGone) {
  Leaving agent;
  agent.join();
  EXPECT_FALSE(agent.shutdown->leaving());
  agent.shutdown->on_outcome(ended(End::Success));
  EXPECT_TRUE(agent.shutdown->leaving());
  EXPECT_EQ(agent.parts.runner.take_calls(), "stop SIGTERM 30000");
  agent.parts.turn();
  EXPECT_FALSE(agent.said_goodbye) << "something of the workers may be left";
  ASSERT_TRUE(agent.leave());
  EXPECT_TRUE(agent.said_goodbye);
  EXPECT_FALSE(agent.parts.backend.is_up());
  EXPECT_EQ(agent.shutdown->exit_code(), 0);
  EXPECT_THAT(agent.parts.lines, IsEmpty());
}

TEST(AgentShutdownTest, WhoHasNotJoinedOwesNobodyAGoodbye) {
  Leaving agent;
  agent.shutdown->on_outcome(ended(End::StoreLost, kDrunFailed));
  ASSERT_TRUE(agent.leave());
  EXPECT_FALSE(agent.said_goodbye);
  EXPECT_EQ(agent.shutdown->exit_code(), kDrunFailed);
  EXPECT_THAT(agent.parts.lines, ElementsAre("drun: error: the words\n"));
}

TEST(AgentShutdownTest, OnlyTheFirstOutcomeCounts) {
  Leaving agent;
  agent.shutdown->on_outcome(ended(End::Timeout, kTimeLimit));
  agent.shutdown->on_outcome(ended(End::Success));
  ASSERT_TRUE(agent.leave());
  EXPECT_EQ(agent.shutdown->exit_code(), kTimeLimit);
}

TEST(AgentShutdownTest, ALostLinkIsNotWaitedFor) {
  Leaving agent;
  agent.join();
  agent.shutdown->on_outcome(ended(End::Success));
  agent.shutdown->on_event(rendezvous::LinkEvent{rendezvous::Link::Failed, "gone"});
  ASSERT_TRUE(agent.leave());
  EXPECT_FALSE(agent.said_goodbye);
}

TEST(AgentShutdownTest, ALostGuardianLeavesNothingToSweep) {
  Leaving agent;
  agent.parts.runner.report(process::GuardianLost{});
  agent.parts.turn();
  EXPECT_FALSE(agent.shutdown->leaving()) << "the job has no outcome yet";
  agent.shutdown->on_outcome(ended(End::Stopped, kDrunFailed));
  ASSERT_TRUE(agent.parts.until([&] { return agent.gone; }));
  EXPECT_EQ(agent.parts.runner.take_calls(), "");
}

// Nothing of what it has begun keeps the loop running: neither the store that it looks for, nor the
// link to it, nor the guardian that it hears.
TEST(AgentShutdownTest, WhoIsGoneWaitsForNothing) {
  Options options = test::lone_job();
  options.backend = Backend::C10d;
  options.endpoint = {"127.0.0.1", 1};  // nobody is there
  options.conf.is_host = false;
  Leaving agent(options);
  bool waits = false;
  agent.parts.on_waiting = [&] { waits = true; };
  agent.parts.backend.start();
  ASSERT_TRUE(agent.parts.until([&] { return waits; }));
  WorkerNews lost;
  lost.guardian_ended = "the guardian died";
  agent.shutdown->on_workers(lost, {});
  agent.shutdown->on_outcome(ended(End::Stopped, 1));
  ASSERT_TRUE(agent.parts.until([&] { return agent.gone; }));
  agent.parts.turn();
  EXPECT_TRUE(agent.parts.io.stopped());
}

// ---- what is told ----

TEST(AgentShutdownTest, AFailureIsABlockAndItsErrorFileGoesToALauncherAbove) {
  const drun::test::TemporaryDirectory folder;
  Options options = test::lone_job();
  options.inherited = {"TORCHELASTIC_ERROR_FILE=" + folder.file("above")};
  Leaving agent(options);
  agent.parts.worker_output.error_files[0] = folder.file("workers");
  std::ofstream(folder.file("workers")) << R"({"message": "no data"})";
  agent.run_worker();
  rendezvous::Outcome outcome = ended(End::Failure, 7);
  outcome.failure.emplace();
  outcome.failure->pid = 101;
  outcome.failure->exit_code = 7;
  outcome.failure->cause = "exit code 7";
  agent.shutdown->on_outcome(outcome);
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("exit code 7")));
  EXPECT_THAT(content(folder.file("above")), HasSubstr("no data"));
}

TEST(AgentShutdownTest, LostOutputIsNoSuccessAndTheReportSaysSo) {
  const drun::test::TemporaryDirectory folder;
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Options options = test::lone_job();
  options.report_file = folder.file("report");
  Leaving agent(options, full.get());
  agent.print("lost\n");
  agent.shutdown->on_outcome(ended(End::Success));
  ASSERT_TRUE(agent.leave());
  EXPECT_EQ(agent.shutdown->exit_code(), kDrunFailed);
  EXPECT_THAT(content(folder.file("report")), HasSubstr(R"("exit_code": 125)"));
}

TEST(AgentShutdownTest, WhileTheJobRunsTheReportSaysSo) {
  const drun::test::TemporaryDirectory folder;
  Options options = test::lone_job();
  options.report_file = folder.file("report");
  std::ofstream(options.report_file) << R"({"result": "success"})";
  Leaving agent(options);
  agent.shutdown->begin();
  ASSERT_TRUE(agent.parts.until(
      [&] { return content(folder.file("report")).find("running") != std::string::npos; }));
  agent.shutdown->on_outcome(ended(End::Failure, 7));
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(content(folder.file("report")), HasSubstr(R"("result": "failure")"));
  EXPECT_EQ(agent.refused, "");
}

TEST(AgentShutdownTest, AReportThatCannotBeWrittenIsSaidAtTheBeginning) {
  const drun::test::TemporaryDirectory folder;
  Options options = test::lone_job();
  options.report_file = folder.file("gone/report");
  Leaving agent(options);
  agent.shutdown->begin();
  ASSERT_TRUE(agent.parts.until([&] { return !agent.refused.empty(); }));
  EXPECT_EQ(agent.refused,
            "--report: write " + options.report_file + ": No such file or directory");
  agent.shutdown->on_outcome(ended(End::Stopped, kDrunFailed));
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(agent.parts.lines, ElementsAre("drun: error: the words\n")) << "it is said once";
}

TEST(AgentShutdownTest, WhoDoesNotKnowTheEndLeavesAReportThatDoes) {
  const drun::test::TemporaryDirectory folder;
  Options options = test::lone_job();
  options.report_file = folder.file("report");
  options.max_nodes = 2;
  Leaving agent(options);
  agent.unannounced = true;
  std::ofstream(options.report_file) << R"({"result": "success"})";
  agent.shutdown->on_outcome(ended(End::StoreLost, kDrunFailed));
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(content(folder.file("report")), HasSubstr("success"));
}

TEST(AgentShutdownTest, WhoHasNoOthersKnowsTheEnd) {
  const drun::test::TemporaryDirectory folder;
  Options options = test::lone_job();
  options.report_file = folder.file("report");
  Leaving agent(options);
  agent.unannounced = true;
  agent.shutdown->on_outcome(ended(End::StoreLost, kDrunFailed));
  EXPECT_TRUE(agent.shutdown->left_unannounced());
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(content(folder.file("report")), HasSubstr(R"("exit_code": 125)"));
}

// A datagram socket whose reader takes nothing and leaves later.
TEST(AgentShutdownTest, OutputThatIsLostWhileItIsFlushedIsNoSuccess) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  while (::send(writer.get(), "x", 1, MSG_DONTWAIT) == 1) {
  }
  Leaving agent(test::lone_job(), writer.get());
  agent.print("unread\n");
  agent.shutdown->on_outcome(ended(End::Success));
  agent.parts.runner.report(process::Stopped{});
  agent.parts.turn();
  ASSERT_FALSE(agent.gone) << "a reader is waited for";
  reader.reset();
  ASSERT_TRUE(agent.parts.until([&] { return agent.gone; }));
  EXPECT_EQ(agent.shutdown->exit_code(), kDrunFailed);
}

// ---- requests to stop ----

TEST(AgentShutdownTest, AFirstRequestAsksTheJobToEnd) {
  Leaving agent;
  agent.run_worker();
  agent.shutdown->on_stop_signal(SIGINT);
  EXPECT_THAT(agent.stops, ElementsAre("received SIGINT 2"));
  EXPECT_EQ(agent.parts.runner.take_calls(), "") << "the workers are stopped with the job";
  agent.parts.workers.stop({});
  EXPECT_EQ(agent.parts.runner.take_calls(), "stop SIGINT 30000") << "as drun was";
}

TEST(AgentShutdownTest, TheGraceIsCountedDown) {
  Leaving agent;
  agent.run_worker();
  agent.shutdown->on_stop_signal(SIGINT);
  agent.parts.workers.stop({});
  const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  agent.shutdown->on_time(later);
  agent.parts.status.line().on_time(later);
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("SIGKILL in ")));
  WorkerNews over;
  over.grace_over = true;
  agent.shutdown->on_workers(over, later);
  EXPECT_FALSE(agent.parts.status.line().next_deadline());
}

TEST(AgentShutdownTest, ASecondRequestKillsAndAThirdWaitsForNothing) {
  Leaving agent;
  agent.run_worker();
  agent.shutdown->on_stop_signal(SIGINT);
  agent.shutdown->on_stop_signal(SIGINT);
  EXPECT_EQ(agent.parts.runner.take_calls(), "stop SIGKILL 0");
  EXPECT_THAT(agent.parts.lines,
              ElementsAre("drun: warning: received SIGINT again: killing the workers\n"));
  agent.shutdown->on_stop_signal(SIGINT);
  EXPECT_EQ(agent.parts.runner.take_calls(), "stop SIGKILL 0, give up");
  EXPECT_THAT(agent.stops, testing::SizeIs(1));
  EXPECT_FALSE(agent.gone) << "the outcome is worth a short wait";
  agent.parts.runner.report(process::GuardianLost{});
  ASSERT_TRUE(agent.parts.until([&] { return agent.gone; }));
  EXPECT_EQ(agent.shutdown->exit_code(), exit_code_of_signal(SIGINT));
}

TEST(AgentShutdownTest, OneRequestThatComesAsTwoSignalsIsOne) {
  Leaving agent;
  agent.run_worker();
  agent.shutdown->on_stop_signal(SIGTERM);
  agent.shutdown->on_stop_signal(SIGTERM);
  EXPECT_EQ(agent.parts.runner.take_calls(), "");
}

TEST(AgentShutdownTest, ARequestWhileTheOutputIsFlushedGivesTheReaderUp) {
  const drun::test::FullPipe full;
  Leaving agent(test::lone_job(), full.fd());
  agent.print("unread\n");
  agent.shutdown->on_outcome(ended(End::Success));
  agent.parts.runner.report(process::Stopped{});
  agent.parts.turn();
  EXPECT_FALSE(agent.gone) << "a reader is waited for";
  agent.shutdown->on_stop_signal(SIGINT);
  EXPECT_TRUE(agent.gone);
  EXPECT_EQ(agent.shutdown->exit_code(), exit_code_of_signal(SIGINT));
  EXPECT_THAT(agent.parts.lines, ElementsAre("drun: error: the rest of standard output is lost: "
                                             "received SIGINT\n"));
}

TEST(AgentShutdownTest, WhoWasToldToStopWaitsForItsReaderOneSecond) {
  const drun::test::FullPipe full;
  Leaving agent(test::lone_job(), full.fd());
  agent.print("unread\n");
  agent.shutdown->on_stop_signal(SIGTERM);
  agent.shutdown->on_outcome(ended(End::Success));
  ASSERT_TRUE(agent.leave());
  EXPECT_THAT(agent.parts.lines, ElementsAre("drun: error: the rest of standard output is lost: "
                                             "nothing was read for 1 s\n"));
}

}  // namespace
}  // namespace drun::launcher
