#include "launcher/output/output_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <future>
#include <string>

#include <gtest/gtest.h>

#include "support/full_pipe.hpp"
#include "support/output_rig.hpp"

namespace drun::launcher {
namespace {

using test::kPatience;
using test::read_until;
using test::write_all;

class OutputRelayTest : public testing::Test {
 protected:
  OutputRelayTest() { ::signal(SIGPIPE, SIG_IGN); }

  // Fills drun's stdout to the last byte.
  [[nodiscard]] std::size_t fill() const {
    return test::fill_pipe(out.write.get(), std::string(4096, '-'));
  }

  test::Pipe out;
  test::Pipe err;
};

TEST_F(OutputRelayTest, AReaderThatComesLateGetsTheEnd) {
  ::fcntl(out.write.get(), F_SETPIPE_SZ, 1 << 20);  // as big as the relay makes it
  const std::size_t filling = fill();
  ASSERT_GT(filling, 0U);
  OutputRelay relay(out.write.get(), err.write.get(), {});
  WorkerStreams agent = relay.open(0);
  relay.start();
  write_all(agent.standard_output.get(), std::string(9'999, 'x') + '\n');
  write_all(agent.standard_error.get(), "words\n");
  agent = {};
  relay.drain(std::chrono::milliseconds(1));
  EXPECT_FALSE(relay.flush_progress().all);
  std::string words;
  EXPECT_TRUE(read_until(err.read.get(), words, [&] { return words == "words\n"; }));
  FlushProgress before;
  EXPECT_TRUE(test::eventually([&] {
    before = relay.flush_progress();
    return before.waits_for_output && !before.waits_for_error;
  }));
  relay.message("more");
  EXPECT_TRUE(read_until(err.read.get(), words, [&] { return words.ends_with("more\n"); }));
  EXPECT_TRUE(test::eventually([&] { return !relay.flush_progress().waits_for_error; }));
  EXPECT_EQ(relay.flush_progress().taken[0], before.taken[0]);
  char byte = 0;
  EXPECT_EQ(::read(out.read.get(), &byte, 1), 1);
  EXPECT_NE(relay.flush_progress().taken[0], before.taken[0]) << "too little to write more";

  std::string shown;
  const std::size_t all = filling - 1 + 10'000;
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.size() == all; }));
  relay.drain(kPatience);
  EXPECT_TRUE(relay.flush_progress().all);
  EXPECT_TRUE(relay.finish());
}

// Two agents are two, as two ranks are: neither's line goes on in the other's.
TEST_F(OutputRelayTest, AnUnfinishedLineOfOneAgentIsEndedBeforeAnothersBegins) {
  OutputRelay relay(out.write.get(), err.write.get(), {});
  const WorkerStreams one = relay.open(0);
  const WorkerStreams other = relay.open(1);
  relay.start();
  write_all(one.standard_output.get(), "begun");
  std::string shown;
  ASSERT_TRUE(read_until(out.read.get(), shown, [&] { return shown == "begun"; }));
  write_all(other.standard_output.get(), "whole\n");
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.ends_with("whole\n"); }));
  EXPECT_EQ(shown, "begun\nwhole\n");
}

TEST_F(OutputRelayTest, TheEndWaitsForNobody) {
  ASSERT_GT(fill(), 0U);
  OutputRelay relay(out.write.get(), err.write.get(), {});
  WorkerStreams agent = relay.open(0);
  relay.start();
  write_all(agent.standard_output.get(), "words\n");
  agent = {};
  EXPECT_TRUE(std::async(std::launch::async, [&] { return relay.finish(); }).get());
}

}  // namespace
}  // namespace drun::launcher
