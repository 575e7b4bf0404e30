// Ctrl-Z, and jobs in the background of a real terminal: who is put to sleep, and when.
#include "launcher/workers/worker_supervisor.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/at_terminal.hpp"
#include "support/fake_workers.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::at_terminal;
using drun::test::end;
using drun::test::start_at_terminal;

// While the job sleeps, the shell takes the terminal; then it lets the job go on in the background.
class RunnerBelowAShell final : public test::FakeRunner {
 public:
  RunnerBelowAShell() : shell_(::fork()) {
    if (shell_ == 0) {
      ::pause();
      ::_exit(0);
    }
    ::setpgid(shell_, shell_);
  }
  ~RunnerBelowAShell() override { end(shell_); }

  bool suspend(int signal) override {
    (void)FakeRunner::suspend(signal);
    take_terminal();
    return signal == SIGTSTP;  // as if the shell were gone the second time
  }
  void take_terminal() const { ::tcsetpgrp(STDIN_FILENO, shell_); }

 private:
  const pid_t shell_;
};

// One worker, which has the terminal.
Options one_worker() {
  Options options;
  options.command = {"/bin/true"};
  options.stdin_rank = 0;
  return options;
}

struct Job {
  explicit Job(Options chosen = one_worker()) : options(std::move(chosen)) {
    assignment.world_size = assignment.role_world_size = 1;
  }
  ~Job() { end(reader); }

  const Options options;
  rendezvous::Assignment assignment;
  RunnerBelowAShell runner;
  test::FakeOutput output;
  test::FakeFiles files;
  asio::io_context io;
  int put_to_sleep = 0;
  WorkerSupervisor supervisor{
      io,
      options,
      "node1",
      runner,
      output,
      files,
      {[](const WorkerNews&, WorkerSupervisor::Time) {}, [] {}, [this] { ++put_to_sleep; }}};
  const pid_t reader = start_at_terminal(true);
};

TEST(WorkerSupervisorTest, AJobThatGoesOnInTheBackgroundSleepsWhenAWorkerReads) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              job.supervisor.start(job.assignment);
              job.io.run();  // it has the terminal: there is nothing to wait for
              job.io.restart();
              if (job.runner.take_calls() != "spawn 1") return 1;
              job.supervisor.suspend();
              job.io.run();
              if (job.runner.take_calls() != "suspend SIGTSTP, suspend SIGTTIN") return 2;
              return job.put_to_sleep == 2 ? 0 : 3;
            }),
            0);
}

TEST(WorkerSupervisorTest, AJobThatBeginsInTheBackgroundSleepsWhenAWorkerReads) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              job.runner.take_terminal();
              job.supervisor.start(job.assignment);
              job.io.run();
              return job.runner.take_calls() == "spawn 1, suspend SIGTTIN" ? 0 : 1;
            }),
            0);
}

TEST(WorkerSupervisorTest, NobodyLooksWhoReadsIfNoWorkerHasTheTerminal) {
  EXPECT_EQ(at_terminal([] {
              Options options = one_worker();
              options.stdin_rank.reset();
              Job job(options);
              job.runner.take_terminal();
              job.supervisor.start(job.assignment);
              job.io.run();
              return job.runner.take_calls() == "spawn 1" ? 0 : 1;
            }),
            0);
}

// The rank that has it may be on another node in the next round.
TEST(WorkerSupervisorTest, NobodyLooksWhoReadsOnceAnotherNodeHasTheRank) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              job.runner.take_terminal();
              job.supervisor.start(job.assignment);
              job.assignment.first_rank = 1;
              job.supervisor.start(job.assignment);
              job.io.run();
              return job.runner.take_calls() == "spawn 1, spawn 2" ? 0 : 1;
            }),
            0);
}

TEST(WorkerSupervisorTest, NobodyLooksWhoReadsAfterTheEnd) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              job.runner.take_terminal();
              job.supervisor.start(job.assignment);
              job.supervisor.close();
              job.io.run();
              return job.runner.take_calls() == "spawn 1" ? 0 : 1;
            }),
            0);
}

TEST(WorkerSupervisorTest, ThatAWorkerReadsWhileAllAreBeingEndedStopsNothing) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              if (!drun::test::eventually([&] { return any_reads_terminal({job.reader}); }))
                return 1;
              job.runner.take_terminal();
              job.supervisor.start(job.assignment);
              job.supervisor.sweep();
              (void)job.runner.take_calls();
              job.io.run_one();  // it looks
              return job.runner.take_calls().empty() && job.put_to_sleep == 0 ? 0 : 2;
            }),
            0);
}

// Its parent suspends all of its agents.
TEST(WorkerSupervisorTest, AnAgentBelowAnotherDrunLeavesItToThatOne) {
  static volatile sig_atomic_t asked = 0;
  EXPECT_EQ(at_terminal([] {
              ::signal(SIGTTIN, [](int) { asked = 1; });
              const pid_t agent = ::fork();
              if (agent == 0) {
                Options options = one_worker();
                options.local_node = 0;
                Job job(options);
                job.runner.take_terminal();
                job.supervisor.start(job.assignment);
                job.io.run();
                ::_exit(job.runner.take_calls() == "spawn 1" && job.put_to_sleep == 1 ? 0 : 1);
              }
              int status = 0;
              ::waitpid(agent, &status, 0);
              return status != 0 ? 1 : asked == 0 ? 2 : 0;
            }),
            0);
}

// The process that leads its session has no shell: it goes on at once.
TEST(WorkerSupervisorTest, WorkersThatAreBeingEndedDoNotSleep) {
  EXPECT_EQ(at_terminal([] {
              Job job;
              job.supervisor.start(job.assignment);
              job.supervisor.sweep();
              (void)job.runner.take_calls();
              job.runner.take_terminal();
              job.supervisor.suspend();
              job.supervisor.close();
              return job.runner.take_calls().empty() && job.put_to_sleep == 1 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace drun::launcher
