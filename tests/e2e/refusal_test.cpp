// Agents that may not take part, nodes that do not come, and what the user is told about either.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/expect_end.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

Arguments job(const ReservedPort& port, const std::string& nodes, const std::string& conf = "") {
  Arguments arguments = {"--nnodes", nodes, "--rdzv-endpoint", port.endpoint()};
  if (!conf.empty()) arguments = arguments + Arguments{"--rdzv-conf", conf};
  return arguments;
}

const Arguments kStay = {"sh", "-c", "echo ready; exec sleep 1000"};

void expect_refused(DrunProcess& agent, const std::string& reason) {
  const Finished finished = agent.finish();
  EXPECT_EQ(finished.code, 125) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(reason));
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.survivors, IsEmpty());
}

void expect_stopped(DrunProcess& agent) {
  expect_end(agent, 128 + SIGTERM);
}

TEST(RefusalTest, AnAgentThatDisagreesIsToldTheFieldAndHarmsNobody) {
  const ReservedPort port;
  DrunProcess first(job(port, "2") + kStay);
  DrunProcess second(job(port, "2") + kStay);
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  DrunProcess stray(job(port, "3") + kStay);
  expect_refused(stray, "has --nnodes 3; the job has --nnodes 2; give all nodes the same");
  DrunProcess other(job(port, "2") + Arguments{"--max-restarts", "5"} + kStay);
  expect_refused(other, "has --max-restarts 5; the job has --max-restarts 0");
  EXPECT_EQ(first.out(), "ready\n");
  second.signal(SIGTERM);
  expect_stopped(first);
  expect_stopped(second);
}

TEST(RefusalTest, ADuplicateNodeRankIsNamedAndTheJobGoesOnWithoutIt) {
  const ReservedPort port;
  const auto agent = [&](const std::string& rank) {
    return job(port, "2", "keep_alive_interval=5,keep_alive_max_attempt=2") +
           Arguments{"--node-rank", rank} + kStay;
  };
  DrunProcess first(agent("0"));
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes")) << first.err();
  DrunProcess duplicate(agent("0"));
  ASSERT_TRUE(first.wait_for_err("asks for node rank 0, which another agent of ")) << first.err();
  expect_refused(duplicate, "asks for node rank 0, which another agent of ");
  DrunProcess second(agent("1"));
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  first.signal(SIGTERM);
  expect_stopped(first);
  expect_stopped(second);
}

// Shorter than it takes until a duplicate is no longer taken for the successor of a dead agent.
TEST(RefusalTest, ADuplicateNodeRankIsNamedWhenTheTimeToJoinIsShort) {
  const ReservedPort port;
  const auto agent = job(port, "2", "join_timeout=15,keep_alive_interval=20") +
                     Arguments{"--node-rank", "0", "echo", "never"};
  DrunProcess first(agent);
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes")) << first.err();
  DrunProcess duplicate(agent);
  expect_refused(duplicate, "asks for node rank 0, which another agent of ");
  const Finished finished = first.finish();
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.err, HasSubstr("missing node rank 1"));
  EXPECT_THAT(finished.err, HasSubstr("refused: "));
  EXPECT_THAT(finished.err, HasSubstr("asks for node rank 0, which another agent of "));
}

// Two jobs that share an endpoint by mistake: the second must not end well without having run.
TEST(RefusalTest, ASecondJobOfOneNodeAtTheSameEndpointIsNoSpare) {
  const ReservedPort port;
  const Arguments own = job(port, "1", "keep_alive_interval=5,keep_alive_max_attempt=2");
  const std::string text =
      "a job of one node without an --rdzv-id already runs at this endpoint; give this one an "
      "--rdzv-id or a port of its own";
  for (const bool outlives : {true, false}) {
    const TempDir directory;
    const std::string wait = (directory.path() / "go-on").string();
    DrunProcess first(
        own + Arguments{"sh", "-c", "echo ready; until [ -e " + wait + " ]; do sleep 0.05; done"});
    ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
    DrunProcess second(own + Arguments{"echo", "never"});
    if (outlives) {
      expect_refused(second, text);
    } else {
      ASSERT_TRUE(second.wait_for_err("drun: not started yet: " + text)) << second.err();
      directory.write("go-on", "");
      expect_refused(second, "drun: error: " + text);
    }
    EXPECT_THAT(second.err(), Not(HasSubstr("spare")));
    directory.write("go-on", "");
    const Finished finished = first.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(second.out(), "");
  }
}

TEST(RefusalTest, MoreAgentsThanTheJobHasRoomForWaitAsSparesAndEndWithIt) {
  const ReservedPort port;
  const auto agent = job(port, "1:2", "last_call_timeout=0.2,keep_alive_interval=20") + kStay;
  DrunProcess first(agent);
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  DrunProcess second(agent);
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  DrunProcess spare(agent);
  ASSERT_TRUE(spare.wait_for_err("spare: the job runs with 2 of 1 to 2 nodes")) << spare.err();
  spare.signal(SIGTERM);  // a spare that is told to stop just goes
  const Finished gone = spare.finish();
  EXPECT_EQ(gone.code, 128 + SIGTERM) << gone.err;
  EXPECT_TRUE(first.running());
  EXPECT_TRUE(second.running());
  first.signal(SIGINT);
  expect_end(first, 128 + SIGINT);
  expect_end(second, 128 + SIGINT);
}

TEST(WaitingTest, SaysWhoIsThereAndAtTheTimeoutWhoIsMissing) {
  const ReservedPort port;
  const auto agent = job(port, "3", "join_timeout=15");
  DrunProcess zero(agent + Arguments{"--node-rank", "0", "echo", "never"});
  DrunProcess two(agent + Arguments{"--node-rank", "2", "echo", "never"});
  EXPECT_TRUE(zero.wait_for_err(" of 3 nodes")) << zero.err();
  EXPECT_TRUE(zero.wait_for_err(" at 127.0.0.1:")) << zero.err();
  EXPECT_THAT(zero.err(), HasSubstr("drun: waiting 00:"));
  for (DrunProcess* each : {&zero, &two}) {
    const Finished finished = each->finish();
    EXPECT_EQ(finished.code, 124);
    EXPECT_THAT(finished.err, HasSubstr(": 2 of 3 nodes ("));
    EXPECT_THAT(finished.err, HasSubstr("missing node rank 1"));
    EXPECT_EQ(finished.out, "");
  }
}

TEST(WaitingTest, NamesTheOtherRendezvousIdsOfTheStore) {
  const ReservedPort port;
  const auto agent = [&](const std::string& id) {
    return job(port, "2", "join_timeout=12") + Arguments{"--rdzv-id", id, "echo", "never"};
  };
  DrunProcess first(agent("run1"));
  DrunProcess second(agent("run-1"));
  const Finished a = first.finish();
  const Finished b = second.finish();
  EXPECT_EQ(a.code, 124);
  EXPECT_EQ(b.code, 124);
  EXPECT_THAT(a.err + b.err, HasSubstr("other rendezvous ids on this store: 'run-1' (1 node)"));
  EXPECT_THAT(a.err + b.err, HasSubstr("other rendezvous ids on this store: 'run1' (1 node)"));
}

TEST(WaitingTest, NamesConfigurationsThatDisagreeFieldByField) {
  const ReservedPort port;
  const auto agent = [&](const std::string& nodes, const std::string& restarts) {
    return job(port, nodes, "join_timeout=15") +
           Arguments{"--max-restarts", restarts, "echo", "never"};
  };
  DrunProcess first(agent("2", "0"));
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes")) << first.err();
  DrunProcess second(agent("3", "4"));
  const std::string fields =
      "has --max-restarts 4, --nnodes 3; the job has --max-restarts 0, --nnodes 2";
  expect_refused(second, fields);
  const Finished finished = first.finish();
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.err, HasSubstr("refused: "));
  EXPECT_THAT(finished.err, HasSubstr(fields));
}

// A listener that lets the kernel accept connections, and never says a word.
class SilentPeer {
 public:
  SilentPeer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  FileDescriptor socket_;
  std::string endpoint_;
};

TEST(PortHolderTest, APortHeldBySomethingThatIsNoStoreNamesTheHolder) {
  const SilentPeer silent;
  const Finished finished = run_drun({"--nnodes", "2", "--rdzv-endpoint", silent.endpoint(),
                                      "--rdzv-conf", "join_timeout=8", "echo", "never"});
  EXPECT_EQ(finished.code, 124);
  const auto port = silent.endpoint().substr(silent.endpoint().find(':') + 1);
  const std::string holder =
      "port " + port + " is held by process " + std::to_string(::getpid()) + " (";
  const auto lines = split_lines(finished.err);
  ASSERT_THAT(lines, testing::Not(IsEmpty()));
  EXPECT_THAT(lines.back(), HasSubstr(holder));
  EXPECT_THAT(lines.back(), HasSubstr("does not answer"));
}

TEST(DeadlineTest, ASignalEndsEveryKindOfWait) {
  const SilentPeer silent;
  const ReservedPort nobody;
  const ReservedPort alone;
  const std::vector<Arguments> waits = {
      {"--rdzv-endpoint", silent.endpoint()},                              // a store's answer
      {"--rdzv-endpoint", nobody.endpoint(), "--rdzv-conf", "is_host=0"},  // a connection
      {"--rdzv-endpoint", "no-such-host.invalid:29400"},                   // a name
      {"--rdzv-endpoint", alone.endpoint()},                               // the other node
  };
  for (const auto& wait : waits) {
    DrunProcess agent(Arguments{"--nnodes", "2"} + wait + Arguments{"echo", "never"});
    ASSERT_TRUE(agent.wait_for_err("drun: ")) << wait[1];
    const auto told = Clock::now();
    agent.signal(SIGTERM);
    const Finished finished = agent.finish();
    EXPECT_EQ(finished.code, 128 + SIGTERM) << wait[1] << ": " << finished.err;
    EXPECT_LT(Clock::now() - told, std::chrono::seconds(45)) << wait[1];
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(DeadlineTest, TheTimeToJoinEndsEveryKindOfWait) {
  const SilentPeer silent;
  const ReservedPort nobody;
  const std::vector<Arguments> waits = {
      {"--rdzv-endpoint", silent.endpoint(), "--rdzv-conf", "join_timeout=1"},
      {"--rdzv-endpoint", nobody.endpoint(), "--rdzv-conf", "join_timeout=1,is_host=0"},
      {"--rdzv-endpoint", "no-such-host.invalid:29400", "--rdzv-conf", "join_timeout=1"},
  };
  for (const auto& wait : waits) {
    const auto begin = Clock::now();
    const Finished finished =
        run_drun(Arguments{"--nnodes", "2"} + wait + Arguments{"echo", "never"});
    EXPECT_EQ(finished.code, 124) << wait[1] << ": " << finished.err;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(45)) << wait[1];
    EXPECT_THAT(finished.err, HasSubstr(wait[1].substr(0, wait[1].find(':')))) << finished.err;
  }
}

}  // namespace
}  // namespace drun::test
