#include "stacks/elsewhere.hpp"

#include <gtest/gtest.h>

#include "stack_samples.hpp"

namespace drun::stacks {
namespace {

using Frames = std::vector<std::string>;

// What was seen of real programs, innermost first. Of PyTorch 1.13 under Python 3.11, whose frames
// drun cannot read by itself:
const Frames kInterpreter = {"_PyEval_EvalFrameDefault (python3.11)",
                             "PyEval_EvalCode (python3.11)",
                             "python3.11+0x247d96",
                             "python3.11+0x2456ee",
                             "python3.11+0x25176f",
                             "_PyRun_SimpleFileObject (python3.11)",
                             "_PyRun_AnyFileObject (python3.11)",
                             "Py_RunMain (python3.11)",
                             "Py_BytesMain (python3.11)"};

Frames interpreted(Frames frames) {
  frames.insert(frames.end(), kInterpreter.begin(), kInterpreter.end());
  return frames;
}

const Frames kAllReduce =
    interpreted({"__futex_abstimed_wait_common (libc.so.6)", "pthread_cond_wait (libc.so.6)",
                 "c10d::Work::wait(...) (libtorch_cpu.so.1.13.0)",
                 "libtorch_python.so.1.13.0+0x9a9b4d", "libtorch_python.so.1.13.0+0x309a30",
                 "python3.11+0x147b95", "_PyObject_MakeTpCall (python3.11)"});
const Frames kLockTwice = interpreted(
    {"__futex_abstimed_wait_common (libc.so.6)", "__new_sem_wait_slow64.constprop.0 (libc.so.6)",
     "PyThread_acquire_lock_timed (python3.11)", "python3.11+0x1899ae", "python3.11+0x147b95",
     "_PyObject_MakeTpCall (python3.11)"});
const Frames kSleep = interpreted({"clock_nanosleep (libc.so.6)", "python3.11+0x1d64b3",
                                   "python3.11+0x145962", "PyObject_Vectorcall (python3.11)"});
const Frames kLoop = interpreted({"PyObject_Free (python3.11)"});

// And of Python 3.13, with the program's own lines.
const Frames kLineOfLock = {"__futex_abstimed_wait_common (libc.so.6)",
                            "__new_sem_wait_slow64.constprop.0 (libc.so.6)",
                            "lock_twice (pylock.py:7)",
                            "step (pylock.py:13)",
                            "main (pylock.py:16)",
                            "<module> (pylock.py:17)"};
const Frames kLineOfRecv = {
    "__recv (libc.so.6)",        "sock_recv (_socket.cpython-313-x86_64-linux-gnu.so)",
    "all_reduce (pylock.py:10)", "step (pylock.py:14)",
    "main (pylock.py:16)",       "<module> (pylock.py:17)"};

// Programs in C; those of MPI poll without a break.
const Frames kPolls = {"epoll_wait (libc.so.6)", "opal_progress (libopen-pal.so.40)",
                       "ompi_request_default_wait (libmpi.so.40)", "MPI_Allreduce (libmpi.so.40)",
                       "main (train)"};
const Frames kPollsOtherwise = {"libopen-pal.so.40+0x2d61a", "MPI_Allreduce (libmpi.so.40)",
                                "main (train)"};
const Frames kInBcast = {"libopen-pal.so.40+0x2d61a", "MPI_Bcast (libmpi.so.40)", "main (train)"};
const Frames kComputes = {"main (train)"};
const Frames kWrites = {"write (libc.so.6)", "save (train)", "main (train)"};
const Frames kReadsPeer = {"recv (libc.so.6)", "from_left (train)", "main (train)"};
const Frames kReadsOther = {"recv (libc.so.6)", "from_file_server (train)", "main (train)"};

struct Rank {
  Frames frames;
  char state = 'S';
};

StackReport report_of(const std::vector<Rank>& ranks) {
  std::vector<Sample> samples;
  for (const Rank& rank : ranks) {
    samples.push_back(worker(static_cast<int>(samples.size()), rank.frames));
    samples.back().state = rank.state;
    if (rank.frames.empty()) samples.back().problem = "no stack";
  }
  return fold({"node0", {0, static_cast<int>(ranks.size()) - 1}}, samples);
}

std::string found_in(const StackReport& report) {
  const auto found = find_elsewhere(report);
  return found ? text_of(*found) : "";
}

TEST(ElsewhereTest, WhoStandsOutIsNamedWithItsOwnFrames) {
  struct Case {
    std::vector<Rank> ranks;
    const char* text;
  };
  const std::vector<Case> cases = {
      {{{kAllReduce}, {kAllReduce}, {kLockTwice}, {kAllReduce}},
       "rank 2 is somewhere else than the other 3: in PyThread_acquire_lock_timed (python3.11)"},
      {{{kAllReduce}, {kAllReduce}, {kSleep}, {kAllReduce}},
       "rank 2 is somewhere else than the other 3: in clock_nanosleep (libc.so.6)"},
      {{{kAllReduce}, {kAllReduce}, {kLoop, 'R'}},
       "rank 2 is somewhere else than the other 2: in PyObject_Free (python3.11)"},
      {{{kLineOfRecv}, {kLineOfRecv}, {kLineOfLock}, {kLineOfRecv}},
       "rank 2 is somewhere else than the other 3: in lock_twice (pylock.py:7), called from step "
       "(pylock.py:13)"},
      {{{kPolls, 'R'}, {kComputes, 'R'}, {kPollsOtherwise, 'R'}},
       "rank 1 is somewhere else than the other 2: in main (train)"},
      {{{kPolls, 'R'}, {kInBcast, 'R'}, {kPollsOtherwise, 'R'}},
       "rank 1 is somewhere else than the other 2: in MPI_Bcast (libmpi.so.40)"},
      {{{kReadsPeer}, {kReadsPeer}, {kReadsPeer}, {kReadsOther}},
       "rank 3 is somewhere else than the other 3: in from_file_server (train)"},
      {{{kPolls, 'R'}, {kWrites}, {kPolls, 'R'}, {kInBcast}, {kPolls, 'R'}, {kPolls, 'R'}},
       "rank 1 is somewhere else than the other 5: in save (train)"},
      {{{kPolls}, {kWrites}, {kPolls}, {kReadsPeer}, {kPolls}, {kPolls}},
       "ranks 1,3 are somewhere else than the other 4: rank 1 in save (train); rank 3 in from_left "
       "(train)"},
      {{{kPolls}, {{}, 'D'}, {kPolls}},
       "rank 1 is somewhere else than the other 2: state D, waits in futex_do_wait, in the system "
       "call futex: no stack"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(found_in(report_of(each.ranks)), each.text);
}

TEST(ElsewhereTest, WhereNobodyStandsOutNobodyIsNamed) {
  const std::vector<std::vector<Rank>> cases = {
      {},
      {{kLockTwice}},
      {{kAllReduce}, {kLockTwice}},                              // which of two?
      {{kAllReduce}, {kLockTwice}, {kAllReduce}, {kLockTwice}},  // about equal
      {{kPolls}, {kPollsOtherwise}, {kPolls}},                   // in the same one
      {{kPolls}, {kWrites}, {kWrites}},                          // it waits for these
      {{kPolls}, {{}}, {kPolls}, {kWrites}, {kPolls}},           // one of which nobody knows
      {{kComputes, 'R'}, {kComputes, 'R'}, {kWrites, 'R'}},      // at work
      {{kComputes}, {kComputes}, {kComputes}, {kWrites}},        // called from there
      {{kReadsPeer, 'R'}, {kReadsPeer, 'R'}, {kReadsPeer, 'R'}, {kReadsOther}},
      {{{}, 'D'}, {{}, 'D'}, {{}, 'D'}},
  };
  for (const auto& each : cases)
    EXPECT_EQ(found_in(report_of(each)), "");
}

// Its return addresses are not the same in all ranks, wherever they are in the program.
TEST(ElsewhereTest, TheWayThroughAnInterpreterSaysNothing) {
  Frames otherwise = kAllReduce;
  otherwise[6] = "PyObject_Vectorcall (python3.11)";
  EXPECT_EQ(found_in(report_of({{kAllReduce}, {otherwise}, {kAllReduce}})), "");
}

// gloo's run in threads: rank 2 has called another collective than the others, as the other frames
// of their first threads would say if drun could read them.
TEST(ElsewhereTest, WhoIsInAnotherCollectiveIsFoundByItsOtherThreads) {
  const Frames rest = {"c10d::ProcessGroupGloo::AsyncWork::execute(...) (libtorch_cpu.so.1.13.0)",
                       "c10d::ProcessGroupGloo::runLoop(int) (libtorch_cpu.so.1.13.0)",
                       "libstdc++.so.6.0.30+0xd44a2"};
  const auto in = [&](Frames frames) {
    frames.insert(frames.begin(), {"__futex_abstimed_wait_common (libc.so.6)",
                                   "pthread_cond_clockwait (libc.so.6)"});
    frames.insert(frames.end(), rest.begin(), rest.end());
    return frames;
  };
  const std::string receives =
      "gloo::transport::tcp::UnboundBuffer::waitRecv(...) (libgloo.so.0.5.0)";
  const Frames loop = {"epoll_wait (libc.so.6)",
                       "gloo::transport::tcp::Loop::run() (libgloo.so.0.5.0)",
                       "libstdc++.so.6.0.30+0xd44a2"};
  const std::vector<Frames> own = {
      in({receives, "libgloo.so.0.5.0+0x338f6", "libtorch_cpu.so.1.13.0+0x446ceb4"}),
      in({receives, "libgloo.so.0.5.0+0x338f6", "libtorch_cpu.so.1.13.0+0x446ceb4"}),
      in({receives, "gloo::broadcast(gloo::BroadcastOptions&) (libgloo.so.0.5.0)",
          "libtorch_cpu.so.1.13.0+0x445e1b7", "libtorch_cpu.so.1.13.0+0x445e33d"}),
      in({"gloo::transport::tcp::UnboundBuffer::waitSend(...) (libgloo.so.0.5.0)",
          "libgloo.so.0.5.0+0x3374b", "libtorch_cpu.so.1.13.0+0x446ceb4"})};
  std::vector<Sample> samples;
  for (int rank = 0; rank < 4; ++rank) {
    samples.push_back(worker(rank, kAllReduce));
    samples.push_back(thread(rank, "python3", own[static_cast<std::size_t>(rank)]));
    samples.push_back(thread(rank, "python3", loop));
    samples.push_back(thread(rank, "python3", {"poll (libc.so.6)", "watch (train)"}));
  }
  EXPECT_EQ(found_in(fold({"node0", {0, 3}}, samples)),
            "rank 2 is somewhere else than the other 3: in "
            "gloo::transport::tcp::UnboundBuffer::waitRecv(...) (libgloo.so.0.5.0), called from "
            "gloo::broadcast(gloo::BroadcastOptions&) (libgloo.so.0.5.0)");
  const auto frames = telling_frames(fold({"node0", {0, 3}}, samples));
  EXPECT_EQ(frames.at(2).text, "gloo::broadcast(gloo::BroadcastOptions&) (libgloo.so.0.5.0)");
  EXPECT_EQ(frames.at(3).text, kAllReduce[2]);
  for (Sample& sample : samples)
    if (sample.rank == 2 && sample.frames == own[2]) sample.frames = own[3];
  EXPECT_EQ(found_in(fold({"node0", {0, 3}}, samples)), "");
}

TEST(ElsewhereTest, RanksThatAreNotInTheReportMayBeAnywhere) {
  StackReport report = report_of({{kPolls}, {kWrites}, {kPolls}});
  EXPECT_NE(found_in(report), "");
  report.notes.push_back({"1 of 2 nodes gave no answer in time: node1", {{3, 3}}});
  EXPECT_EQ(found_in(report), "");
  report.notes.clear();
  report.nodes = {{"node0", {0, 3}}};
  EXPECT_EQ(found_in(report), "");
}

TEST(ElsewhereTest, OneOfVeryManyIsFound) {
  StackReport report = report_of({{kPolls}, {kWrites}, {kPolls}});
  report.nodes = {{"node0", {0, 99'999}}};
  for (StackGroup& group : report.groups)
    if (group.frames == kPolls) group.ranks = {{0, 0}, {2, 99'999}};
  EXPECT_EQ(found_in(report), "rank 1 is somewhere else than the other 99999: in save (train)");
}

TEST(ElsewhereTest, TheFrameThatSaysMost) {
  EXPECT_EQ(telling_frame(kAllReduce).text, "c10d::Work::wait(...) (libtorch_cpu.so.1.13.0)");
  EXPECT_EQ(telling_frame(kPolls).text, "MPI_Allreduce (libmpi.so.40)");
  EXPECT_EQ(telling_frame(kLineOfLock).text, "lock_twice (pylock.py:7)");
  EXPECT_EQ(telling_frame(kReadsPeer).text, "from_left (train)");
  EXPECT_EQ(
      telling_frame({"syscall (libc.so.6)", "std::mutex::lock() (train)", "f() (train)"}).text,
      "f() (train)");
  EXPECT_EQ(telling_frame({"__pthread_mutex_lock (libc.so.6)",
                           "__gthread_mutex_lock(pthread_mutex_t*) (train)", "f() (train)"})
                .text,
            "f() (train)");
  EXPECT_EQ(telling_frame({"train+0x1234", "libc.so.6+0x27249"}).text, "");
  EXPECT_EQ(telling_frame({"request_wait_answer (kernel)", "fuse_file_read_iter (kernel)"}).text,
            "");
  EXPECT_EQ(telling_frame({}).text, "");
  const auto frames = telling_frames(report_of({{kPolls}, {kWrites}, {{}}, {kPolls}}));
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames.at(1).text, "save (train)");
  EXPECT_FALSE(frames.at(1).waits_for_ranks);
  EXPECT_EQ(frames.at(3).text, "MPI_Allreduce (libmpi.so.40)");
  EXPECT_TRUE(frames.at(3).waits_for_ranks);
}

// Who waits for a GPU waits for other ranks only if that does.
TEST(ElsewhereTest, AGpuIsNoOtherRank) {
  const Frames computes = {"sched_yield (libc.so.6)", "libcuda.so.1+0x1234",
                           "cudaStreamSynchronize (libcudart.so.12)", "train_step() (train)"};
  const TellingFrame found = telling_frame(computes);
  EXPECT_EQ(found.text, "cudaStreamSynchronize (libcudart.so.12)");
  EXPECT_TRUE(found.waits_for_gpu);
  EXPECT_FALSE(found.waits_for_ranks);
  for (const char* frame : {"cuStreamSynchronize (libcuda.so.1)", "hipDeviceSynchronize (x)"})
    EXPECT_TRUE(telling_frame({frame}).waits_for_gpu) << frame;
  Frames collective = computes;
  collective.push_back("c10d::ProcessGroupNCCL::WorkNCCL::wait (libtorch_cuda.so)");
  EXPECT_TRUE(telling_frame(collective).waits_for_ranks);
  EXPECT_FALSE(telling_frame(collective).waits_for_gpu);
  EXPECT_EQ(found_in(report_of({{computes}, {computes}, {kWrites}})),
            "rank 2 is somewhere else than the other 2: in save (train), called from main (train)")
      << "as a rule it does";
}

TEST(ElsewhereTest, LibrariesByWhichRanksWait) {
  for (const char* frame :
       {"ncclAllReduce (libtorch_cuda.so)", "PMPI_Barrier (libmpi.so.40)", "gloo::barrier (x)",
        "libnccl.so.2+0x123", "barrier (distributed_c10d.py:3100)", "c10d::TCPStore::wait (t)"})
    EXPECT_TRUE(waits_for_ranks(frame)) << frame;
  for (const char* frame : {"ncclass (train)", "main (train)", "train+0x12", "", "read (libc.so.6)",
                            "step (train.py:4)", "cudaStreamSynchronize (libcudart.so.12)"})
    EXPECT_FALSE(waits_for_ranks(frame)) << frame;
}

}  // namespace
}  // namespace drun::stacks
