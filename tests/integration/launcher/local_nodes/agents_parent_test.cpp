// The parent of local agents, as a process of its own. Its agents are functions: each hears its
// signals one by one and tells the test, so every step is waited for.
#include "launcher/local_nodes/agents_parent.hpp"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "drun/base/log.hpp"
#include "launcher/process/detach.hpp"
#include "support/full_pipe.hpp"
#include "support/output_rig.hpp"
#include "support/process_state.hpp"

namespace drun::launcher {
namespace {

using test::eventually;
using test::Pipe;

constexpr int kLeftAChild = 99;
constexpr int kStillThere = 999;
constexpr int kKilledBy = 1000;

constexpr int stopped_by(int signal) {
  return -signal;
}

// Of one agent; every signal is blocked in it.
class Agent {
 public:
  Agent(int news, std::size_t node, std::atomic<bool>& unannounced)
      : news_(news), node_(node), unannounced_(unannounced) {}

  // One word for the test.
  void say(const std::string& word) const {
    const std::string line = std::to_string(node_) + " " + word + "\n";
    (void)!::write(news_, line.data(), line.size());
  }
  // The next signal, which the test is told.
  int hear() const {
    sigset_t all;
    ::sigfillset(&all);
    int signal = 0;
    ::sigwait(&all, &signal);
    say(process::signal_name(signal));
    return signal;
  }
  void hear_until(int signal) const {
    while (hear() != signal) {
    }
  }
  // The others cannot know that it leaves.
  void leave_unannounced() const { unannounced_ = true; }

 private:
  int news_;
  std::size_t node_;
  std::atomic<bool>& unannounced_;
};

// What an agent does; gives its exit code.
using Role = std::function<int(const Agent&)>;

Role ends(int code) {
  return [code](const Agent&) { return code; };
}

Role ends_at(int signal, int code) {
  return [=](const Agent& agent) {
    agent.hear_until(signal);
    return code;
  };
}

// Ends when drun was told to stop.
const Role kStops = ends_at(SIGTERM, exit_code_of_signal(SIGTERM));

const Role kHangs = [](const Agent& agent) {
  for (;;)
    agent.hear();
  return 0;
};

// Somebody has stopped it; as it goes on it does as it was told.
const Role kIsStopped = [](const Agent& agent) {
  ::raise(SIGSTOP);
  return kStops(agent);
};

struct Job {
  explicit Job(std::vector<Role> roles) : agents(std::move(roles)) {
    options.min_nodes = options.max_nodes = static_cast<int>(agents.size());
    options.signals_to_handle = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    options.quit_stops = true;
    options.forward_signals = {SIGUSR1};
  }

  std::vector<Role> agents;
  Options options;
  bool adopts_orphans = true;
  bool leads_session = false;  // else it is a job of a shell
  int standard_output = -1;    // else a pipe that nobody reads
};

// In the process of drun.
int run(const Job& job, int standard_output, int standard_error, int news) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  log::configure("drun", log::Level::Warning);
  ignore_write_signals();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  OutputRelay relay(standard_output, standard_error, {});
  const std::size_t nodes = job.agents.size();
  AgentsParent::Unannounced unannounced(nodes);
  const bool adopts = job.adopts_orphans && process::adopt_orphans();
  std::vector<WorkerStreams> streams;
  for (std::size_t node = 0; node < nodes; ++node)
    streams.push_back(relay.open(static_cast<int>(node)));
  std::vector<pid_t> agents;
  for (std::size_t node = 0; node < nodes; ++node) {
    agents.push_back(::fork());
    if (agents.back() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(streams[node].standard_output.get(), STDOUT_FILENO);
      ::dup2(streams[node].standard_error.get(), STDERR_FILENO);
      streams.clear();
      const Agent agent(news, node, unannounced[node]);
      agent.say(std::to_string(::getpid()));
      ::_exit(job.agents[node](agent));
    }
  }
  streams.clear();
  relay.start();
  const int code = AgentsParent(job.options, agents, unannounced, relay, adopts).run();
  return ::waitpid(-1, nullptr, WNOHANG) < 0 ? code : kLeftAChild;
}

class Parent {
 public:
  // All agents are there.
  explicit Parent(const Job& job) : pids_(job.agents.size(), -1) {
    pid_ = ::fork();
    if (pid_ == 0) {
      job.leads_session ? ::setsid() : ::setpgid(0, 0);
      const int out = job.standard_output < 0 ? out_.write.get() : job.standard_output;
      ::_exit(run(job, out, err_.write.get(), news_.write.get()));
    }
    err_.write.reset();
    for (std::size_t node = 0; node < pids_.size(); ++node)
      pids_[node] = std::stoi(words(node, 1));
  }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;
  ~Parent() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t agent(std::size_t node) const { return pids_[node]; }
  // Returns when drun has it, so that the next one neither merges with it nor overtakes it.
  void signal(int number) const {
    ::kill(pid_, number);
    EXPECT_TRUE(eventually([&] { return !test::in_set(pid_, "ShdPnd", number); }));
  }
  // All that an agent has heard and said, as soon as that is `count` words.
  [[nodiscard]] std::string heard(std::size_t node, std::size_t count) {
    const std::string all = words(node, count + 1);
    return all.substr(std::min(all.find(' '), all.size() - 1) + 1);
  }
  // drun knows that the agent has ended.
  [[nodiscard]] bool knows_the_end_of(std::size_t node) const {
    return eventually([&] { return ::kill(pids_[node], 0) != 0; });
  }
  // Waits until drun ends (its exit code, or kKilledBy) or stops (stopped_by()).
  [[nodiscard]] int change() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WUNTRACED | WNOHANG) == pid_; }))
      return kStillThere;
    if (WIFSTOPPED(status)) return stopped_by(WSTOPSIG(status));
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kKilledBy + WTERMSIG(status);
  }
  // What drun and the agents said to the user. Everything has ended.
  [[nodiscard]] std::string said() {
    std::string text;
    test::read_until(err_.read.get(), text, [] { return false; });
    return text;
  }

 private:
  // Of one agent, with spaces between them; waits until there are so many.
  std::string words(std::size_t node, std::size_t count) {
    std::string result;
    const auto enough = [&] {
      result.clear();
      std::size_t found = 0;
      for (const auto& line : test::split_lines(all_news_.substr(0, all_news_.rfind('\n') + 1))) {
        const std::string start = std::to_string(node) + " ";
        if (!line.starts_with(start)) continue;
        result += (found++ == 0 ? "" : " ") + line.substr(start.size());
      }
      return found >= count;
    };
    test::read_until(news_.read.get(), all_news_, enough);
    return result;
  }

  Pipe out_;
  Pipe err_;
  Pipe news_;
  std::string all_news_;
  pid_t pid_ = -1;
  std::vector<pid_t> pids_;
};

std::string killed(pid_t agent) {
  return "drun: error: an agent (pid " + std::to_string(agent) + ") was killed by SIGKILL\n";
}

// ---- ends ----

TEST(AgentsParentTest, GivesTheSuccessOfAll) {
  Parent drun(Job({ends(0), ends(0), ends(0)}));
  EXPECT_EQ(drun.change(), 0);
  EXPECT_EQ(drun.said(), "");
}

TEST(AgentsParentTest, GivesTheFailureThatOneTells) {
  Parent drun(Job({ends(0), ends(7), ends(0)}));
  EXPECT_EQ(drun.change(), 7);
  EXPECT_EQ(drun.said(), "") << "the agent has said it";
}

TEST(AgentsParentTest, StopsTheOthersIfTooFewAreLeft) {
  Parent drun(Job({kHangs, kIsStopped, kIsStopped}));
  for (const std::size_t node : {1U, 2U})
    ASSERT_TRUE(eventually([&] { return test::stopped(drun.agent(node)); }));
  ::kill(drun.agent(0), SIGKILL);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGKILL));
  EXPECT_EQ(drun.heard(1, 1), "SIGTERM");
  EXPECT_EQ(drun.heard(2, 1), "SIGTERM");
  EXPECT_EQ(drun.said(),
            killed(drun.agent(0)) + "drun: error: stopping: 2 of at least 3 nodes left\n");
}

TEST(AgentsParentTest, GoesOnWithoutOneThatIsNotNeeded) {
  Job job({kHangs, ends_at(SIGUSR1, 0)});
  job.options.min_nodes = 1;
  Parent drun(job);
  ::kill(drun.agent(0), SIGKILL);
  ASSERT_TRUE(drun.knows_the_end_of(0));
  drun.signal(SIGUSR1);
  EXPECT_EQ(drun.change(), 0);
  EXPECT_EQ(drun.heard(1, 1), "SIGUSR1") << "it was not told to stop";
  EXPECT_EQ(drun.said(), killed(drun.agent(0)));
}

TEST(AgentsParentTest, OneThatLeavesUnannouncedIsLostToTheOthers) {
  Parent drun(Job({[](const Agent& agent) {
                     agent.leave_unannounced();
                     return 7;
                   },
                   kStops}));
  EXPECT_EQ(drun.change(), 7);
  EXPECT_EQ(drun.said(), "drun: error: stopping: 1 of at least 2 nodes left\n");
}

TEST(AgentsParentTest, WhoLeavesBecauseAllAreToStopIsNotLost) {
  const Role leaves = [](const Agent& agent) {
    agent.hear_until(SIGTERM);
    agent.leave_unannounced();
    return exit_code_of_signal(SIGTERM);
  };
  Parent drun(Job({leaves, ends_at(SIGUSR1, 0)}));
  drun.signal(SIGTERM);
  ASSERT_TRUE(drun.knows_the_end_of(0));
  EXPECT_EQ(drun.heard(1, 2), "SIGTERM SIGCONT");
  drun.signal(SIGUSR1);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGTERM));
  EXPECT_EQ(drun.heard(1, 3), "SIGTERM SIGCONT SIGUSR1") << "it was told once";
  EXPECT_EQ(drun.said(), "");
}

// ---- what a killed agent leaves behind ----

class OrphanTest : public testing::Test {
 protected:
  // An agent with a child that ends when it is let go.
  [[nodiscard]] Role has_child() {
    return [this](const Agent& agent) {
      if (::fork() == 0) {
        gate_.write.reset();  // it ends with the test, too
        char byte = 0;
        (void)!::read(gate_.read.get(), &byte, 1);
        ::_exit(0);
      }
      agent.say("forked");
      return kHangs(agent);
    };
  }
  // Its child stays; all other agents have ended.
  void kill_the_first(Parent& drun) {
    ASSERT_EQ(drun.heard(0, 1), "forked");
    ::kill(drun.agent(0), SIGKILL);
    ASSERT_TRUE(drun.knows_the_end_of(0));
    drun.signal(SIGUSR1);
    ASSERT_TRUE(drun.knows_the_end_of(1));
  }
  void let_go() const { test::write_all(gate_.write.get(), "\n"); }

  Job job_{std::vector<Role>{has_child(), ends_at(SIGUSR1, 0)}};

 private:
  Pipe gate_;
};

TEST_F(OrphanTest, IsWaitedFor) {
  job_.options.min_nodes = 1;
  Parent drun(job_);
  kill_the_first(drun);
  drun.signal(SIGTSTP);
  ASSERT_EQ(drun.change(), stopped_by(SIGTSTP)) << "it is still there";
  drun.signal(SIGCONT);
  let_go();
  EXPECT_EQ(drun.change(), 0);
  EXPECT_EQ(drun.said(), killed(drun.agent(0)));
}

TEST_F(OrphanTest, IsLeftToOthersByAParentThatAdoptsNone) {
  job_.options.min_nodes = 1;
  job_.adopts_orphans = false;
  Parent drun(job_);
  kill_the_first(drun);
  EXPECT_EQ(drun.change(), 0);
  let_go();
  EXPECT_EQ(drun.said(), killed(drun.agent(0)));
}

TEST_F(OrphanTest, ARequestWhileItIsWaitedForIsNoSuccess) {
  job_.options.min_nodes = 1;
  Parent drun(job_);
  kill_the_first(drun);
  for (const int request : {SIGINT, SIGINT, SIGINT, SIGTERM}) {
    drun.signal(request);
    drun.signal(SIGTSTP);
    ASSERT_EQ(drun.change(), stopped_by(SIGTSTP)) << "it is still waited for";
    drun.signal(SIGCONT);
  }
  let_go();
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGINT));
  EXPECT_EQ(drun.said(), killed(drun.agent(0))) << "there was no agent to kill";
}

// ---- signals ----

TEST(AgentsParentTest, PassesEachRequestToStopOnOnce) {
  Parent drun(Job({[](const Agent& agent) {
                     agent.hear_until(SIGUSR1);
                     return kStops(agent);
                   },
                   kIsStopped}));
  ASSERT_TRUE(eventually([&] { return test::stopped(drun.agent(1)); }));
  drun.signal(SIGTERM);
  EXPECT_EQ(drun.heard(0, 2), "SIGTERM SIGCONT");
  EXPECT_EQ(drun.heard(1, 1), "SIGTERM") << "one that is stopped goes on";
  drun.signal(SIGUSR1);
  EXPECT_EQ(drun.heard(0, 3), "SIGTERM SIGCONT SIGUSR1");
  drun.signal(SIGTERM);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGTERM));
  EXPECT_EQ(drun.heard(0, 4), "SIGTERM SIGCONT SIGUSR1 SIGTERM");
  EXPECT_EQ(drun.said(), "");
}

TEST(AgentsParentTest, KillsAgentsThatThreeRequestsDoNotEnd) {
  Parent drun(Job({kHangs, ends_at(SIGINT, 0)}));
  std::string heard;
  for (std::size_t request = 1; request <= 3; ++request) {
    drun.signal(SIGINT);
    heard += request == 1 ? "SIGINT SIGCONT" : " SIGINT SIGCONT";
    ASSERT_EQ(drun.heard(0, 2 * request), heard);
  }
  drun.signal(SIGTERM);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGTERM));
  EXPECT_EQ(drun.heard(0, 6), heard);
  EXPECT_EQ(drun.said(), "drun: warning: received SIGTERM again: killing the agents\n");
}

TEST(AgentsParentTest, ASignalForTheWorkersStopsNothing) {
  Parent drun(Job({ends_at(SIGUSR1, 0), ends_at(SIGHUP, 129)}));
  drun.signal(SIGUSR1);
  EXPECT_EQ(drun.heard(0, 1), "SIGUSR1");
  EXPECT_EQ(drun.heard(1, 1), "SIGUSR1");
  drun.signal(SIGHUP);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGHUP));
  EXPECT_EQ(drun.heard(1, 2), "SIGUSR1 SIGHUP");
}

TEST(AgentsParentTest, ANewSizeIsTheAgentsBeforeTheyHearOfIt) {
  winsize size{24, 80, 0, 0};
  int ends[2] = {-1, -1};
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size), 0);
  const FileDescriptor master(ends[0]);
  const FileDescriptor slave(ends[1]);
  Job job({[](const Agent& agent) {
    agent.hear_until(SIGWINCH);
    winsize own{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &own);
    agent.say(std::to_string(own.ws_col) + "x" + std::to_string(own.ws_row));
    return 0;
  }});
  job.standard_output = slave.get();
  Parent drun(job);
  size = {30, 100, 0, 0};
  ASSERT_EQ(::ioctl(master.get(), TIOCSWINSZ, &size), 0);
  drun.signal(SIGWINCH);
  EXPECT_EQ(drun.change(), 0);
  EXPECT_EQ(drun.heard(0, 2), "SIGWINCH 100x30");
}

// ---- Ctrl-Z ----

// How long drun waits for its agents.
constexpr std::chrono::seconds kSuspendLimit{1};

// As an agent does it: it stops, which takes a moment, and goes on with drun.
const Role kSuspends = [](const Agent& agent) {
  agent.hear_until(SIGTSTP);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::raise(SIGSTOP);
  agent.hear_until(SIGCONT);
  return 0;
};

TEST(AgentsParentTest, StopsAfterItsAgentsAndGoesOnWithThem) {
  for (const int signal : {SIGTSTP, SIGTTIN}) {
    SCOPED_TRACE(process::signal_name(signal));
    Parent drun(Job({kSuspends, kSuspends}));
    const auto begin = std::chrono::steady_clock::now();
    drun.signal(signal);
    ASSERT_EQ(drun.change(), stopped_by(signal));
    for (const std::size_t node : {0U, 1U}) {
      EXPECT_TRUE(test::stopped(drun.agent(node)) ||
                  std::chrono::steady_clock::now() - begin >= kSuspendLimit);
      ASSERT_TRUE(eventually([&] { return test::stopped(drun.agent(node)); }));
      EXPECT_EQ(drun.heard(node, 1), "SIGTSTP");
    }
    drun.signal(SIGCONT);
    EXPECT_EQ(drun.change(), 0);
    for (const std::size_t node : {0U, 1U})
      EXPECT_EQ(drun.heard(node, 2), "SIGTSTP SIGCONT");
    EXPECT_EQ(drun.said(), "");
  }
}

TEST(AgentsParentTest, DoesNotWaitForAnAgentThatHangs) {
  Parent drun(Job({ends_at(SIGCONT, 0), kSuspends}));
  drun.signal(SIGTSTP);
  ASSERT_EQ(drun.change(), stopped_by(SIGTSTP));
  EXPECT_EQ(drun.heard(0, 1), "SIGTSTP");
  ASSERT_TRUE(eventually([&] { return test::stopped(drun.agent(1)); }));
  drun.signal(SIGCONT);
  EXPECT_EQ(drun.change(), 0);
}

TEST(AgentsParentTest, AnAgentThatEndsInsteadOfStoppingHasEnded) {
  Parent drun(Job({ends_at(SIGTSTP, 0), ends_at(SIGTSTP, 7)}));
  drun.signal(SIGTSTP);
  ASSERT_EQ(drun.change(), stopped_by(SIGTSTP));
  drun.signal(SIGCONT);
  EXPECT_EQ(drun.change(), 7);
}

TEST(AgentsParentTest, NobodyIsStoppedWhereNoShellCouldResumeDrun) {
  Job job({ends_at(SIGUSR1, 0)});
  job.leads_session = true;
  Parent drun(job);
  drun.signal(SIGTSTP);
  drun.signal(SIGUSR1);
  EXPECT_EQ(drun.change(), 0);
  EXPECT_EQ(drun.heard(0, 1), "SIGUSR1");
}

// ---- the output ----

const Role kPrints = [](const Agent&) {
  test::write_all(STDOUT_FILENO, "words\n");
  return 0;
};

TEST(AgentsParentTest, ARequestGivesUpAReaderThatTakesNothing) {
  const test::FullPipe full;
  Job job({kPrints});
  job.standard_output = full.fd();
  Parent drun(job);
  ASSERT_TRUE(drun.knows_the_end_of(0));
  drun.signal(SIGINT);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGINT)) << "a success was not waited for";
  EXPECT_EQ(drun.said(), "drun: error: the rest of standard output is lost: received SIGINT\n");
}

TEST(AgentsParentTest, AStoppedJobWaitsForItsReaderOneSecond) {
  const test::FullPipe full;
  Job job({[](const Agent& agent) {
    kPrints(agent);
    return kStops(agent);
  }});
  job.standard_output = full.fd();
  Parent drun(job);
  drun.signal(SIGTERM);
  EXPECT_EQ(drun.change(), exit_code_of_signal(SIGTERM));
  EXPECT_EQ(drun.said(),
            "drun: error: the rest of standard output is lost: nothing was read for 1 s\n");
}

TEST(AgentsParentTest, OutputThatCouldNotBeWrittenIsNoSuccess) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Job job({kPrints});
  job.standard_output = full.get();
  Parent drun(job);
  EXPECT_EQ(drun.change(), kDrunFailed);
}

}  // namespace
}  // namespace drun::launcher
