#include "launcher/workers/failure_summary.hpp"

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Of a worker of /bin/train on node7 that ended so.
std::vector<Traces> traces(int signal, bool dumped) {
  WorkerSpec spec;
  spec.command = {"/bin/train", "--steps", "7"};
  const rendezvous::Assignment assignment;
  const std::string host = "node7";
  Workers workers;
  Worker& worker = workers[5];
  worker.pid = 4711;
  worker.stage = Worker::Stage::Ended;
  worker.end.status.signal = signal;
  worker.end.status.core_dumped = dumped;
  RoundFailures failures;
  failures.on_end(5, worker.end, std::nullopt, {});
  return traces_of({spec, assignment, host, workers, failures});
}

TEST(TracesTest, OfACrashThereMayBeACoreFileOfThatName) {
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGQUIT}) {
    const bool dumped = signal == SIGSEGV || signal == SIGQUIT;
    const auto found = traces(signal, dumped);
    ASSERT_THAT(found, SizeIs(1)) << signal;
    EXPECT_EQ(found[0].worker, 5U);
    ASSERT_TRUE(found[0].core);
    EXPECT_EQ(found[0].core->pid, 4711);
    EXPECT_EQ(found[0].core->signal, signal);
    EXPECT_EQ(found[0].core->dumped, dumped);
    EXPECT_EQ(found[0].core->executable, "/bin/train");
    EXPECT_EQ(found[0].core->host, "node7");
  }
}

TEST(TracesTest, OfAnotherEndThereIsNone) {
  for (const int signal : {SIGKILL, SIGTERM, SIGQUIT})
    EXPECT_THAT(traces(signal, false), IsEmpty()) << signal;
}

}  // namespace
}  // namespace drun::launcher
