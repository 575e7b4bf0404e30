// PMI-1 over real socket pairs; the nodes exchange through a real store. Each worker is a socket.
#include "launcher/services/pmi_service.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/base/log.hpp"
#include "rendezvous/types.hpp"
#include "support/patience.hpp"
#include "support/running_server.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PmiServiceTest : public ::testing::Test {
 protected:
  // What is told of a worker, "1 (7): why".
  using Faults = std::vector<std::string>;

  PmiServiceTest() {
    log::redirect([this](std::string line) { said_ += line; });
  }
  ~PmiServiceTest() override {
    for (auto& each : nodes_)
      each->end();
    io_.restart();
    io_.poll();
    log::redirect({});
  }
  PmiService& start(int group_rank, int nodes, int workers, int round = 1,
                    const std::string& run_id = "my job") {
    const std::size_t at = nodes_.size();
    faults_.emplace_back();
    nodes_.push_back(
        std::make_unique<PmiService>(io_, run_id, [this, at](int rank, const RankFault& fault) {
          faults_[at].push_back(text_of(rank, fault));
        }));
    begin(at, group_rank, nodes, workers, round);
    return *nodes_.back();
  }
  void begin(std::size_t at, int group_rank, int nodes, int workers, int round) {
    rendezvous::Assignment assignment;
    assignment.round = round;
    assignment.group_rank = group_rank;
    assignment.group_world_size = nodes;
    assignment.world_size = nodes * workers;
    assignment.master_address = server_.endpoint().host;
    assignment.master_port = server_.endpoint().port;
    nodes_[at]->begin(assignment, workers);
  }
  static std::string text_of(int rank, const RankFault& fault) {
    return std::to_string(rank) + " (" + std::to_string(fault.exit_code) + "): " + fault.cause;
  }
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(1));
      return condition();
    });
  }
  static void tell(const FileDescriptor& worker, const std::string& lines) {
    ASSERT_EQ(::send(worker.get(), lines.data(), lines.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(lines.size()));
  }
  // The next line that this worker gets; "": the end.
  std::string hear(const FileDescriptor& worker) {
    std::string line;
    EXPECT_TRUE(until([&] {
      char byte = 0;
      ssize_t size = 0;
      while ((size = ::recv(worker.get(), &byte, 1, MSG_DONTWAIT)) == 1 && byte != '\n')
        line += byte;
      return size == 0 || byte == '\n';
    }));
    return line;
  }
  std::string ask(const FileDescriptor& worker, const std::string& line) {
    tell(worker, line + "\n");
    return hear(worker);
  }
  FileDescriptor begun(PmiService& node, int rank) {
    FileDescriptor worker = node.connect(rank);
    EXPECT_EQ(ask(worker, "cmd=init pmi_version=1 pmi_subversion=1"),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    return worker;
  }
  static std::string space_of(const std::string& answer) {
    return answer.substr(answer.find("kvsname=") + 8);
  }

  test::RunningServer server_;
  asio::io_context io_{1};
  std::string said_;
  std::vector<Faults> faults_;
  std::vector<std::unique_ptr<PmiService>> nodes_;
};

TEST_F(PmiServiceTest, WorkersOfOneNodeMeetWithoutAStore) {
  auto& node = start(0, 1, 2);
  const auto first = begun(node, 0);
  const auto second = begun(node, 1);
  const std::string space = space_of(ask(first, "cmd=get_my_kvsname"));
  EXPECT_THAT(space, ::testing::MatchesRegex("drun_my_job_127_0_0_1_[0-9]+_1"));
  EXPECT_THAT(ask(first, "cmd=put kvsname=" + space + " key=k value=v"), HasSubstr("rc=0"));
  tell(first, "cmd=barrier_in\n");
  tell(second, "cmd=barrier_in\n");
  EXPECT_EQ(hear(first), "cmd=barrier_out rc=0");
  EXPECT_EQ(hear(second), "cmd=barrier_out rc=0");
  EXPECT_THAT(ask(second, "cmd=get kvsname=" + space + " key=k"), HasSubstr("value=v"));
  for (const auto* worker : {&first, &second})
    EXPECT_EQ(ask(*worker, "cmd=finalize"), "cmd=finalize_ack rc=0");
  EXPECT_FALSE(node.at_end(0, true));
  EXPECT_FALSE(node.at_end(1, true));
  EXPECT_THAT(faults_[0], IsEmpty());
  EXPECT_EQ(said_, "");
}

TEST_F(PmiServiceTest, WorkersOfTwoNodesExchangeThroughTheStore) {
  auto& one = start(0, 2, 1);
  auto& two = start(1, 2, 1);
  const auto first = begun(one, 0);
  const auto second = begun(two, 0);
  const std::string space = space_of(ask(first, "cmd=get_my_kvsname"));
  EXPECT_EQ(space_of(ask(second, "cmd=get_my_kvsname")), space);
  EXPECT_THAT(ask(second, "cmd=get kvsname=" + space + " key=PMI_process_mapping"),
              HasSubstr("value=(vector,(0,2,1))"));
  for (int barrier = 0; barrier < 3; ++barrier) {
    const std::string number = std::to_string(barrier);
    (void)ask(first, "cmd=put kvsname=" + space + " key=a" + number + " value=one");
    (void)ask(second, "cmd=put kvsname=" + space + " key=b" + number + " value=two");
    tell(first, "cmd=barrier_in\n");
    tell(second, "cmd=barrier_in\n");
    EXPECT_EQ(hear(first), "cmd=barrier_out rc=0");
    EXPECT_EQ(hear(second), "cmd=barrier_out rc=0");
    EXPECT_THAT(ask(first, "cmd=get kvsname=" + space + " key=b" + number), HasSubstr("=two"));
    EXPECT_THAT(ask(second, "cmd=get kvsname=" + space + " key=a" + number), HasSubstr("=one"));
  }
  EXPECT_EQ(said_, "");
}

TEST_F(PmiServiceTest, AWorkerThatBreaksTheRulesIsToldOfAndGetsNoAnswer) {
  auto& node = start(0, 1, 2);
  const auto first = begun(node, 0);
  const auto second = begun(node, 1);
  tell(first, "cmd=nonsense\n");
  ASSERT_TRUE(until([&] { return !faults_[0].empty(); }));
  EXPECT_THAT(faults_[0], ElementsAre("0 (1): broke PMI-1 with 'cmd=nonsense' as a command"));
  tell(first, "cmd=get_maxes\n");
  EXPECT_THAT(ask(second, "cmd=get_maxes"), HasSubstr("cmd=maxes"));
  char byte = 0;
  EXPECT_EQ(::recv(first.get(), &byte, 1, MSG_DONTWAIT), -1) << "neither an answer nor an end";
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(faults_[0].size(), 1U);
}

TEST_F(PmiServiceTest, WhatAWorkerSaidLastIsHeardAtItsEnd) {
  auto& node = start(0, 1, 3);
  const auto first = begun(node, 0);
  const auto second = begun(node, 1);
  const auto third = begun(node, 2);
  tell(first, "cmd=abort exitcode=9\n");
  const auto aborted = node.at_end(0, false);
  ASSERT_TRUE(aborted);
  EXPECT_EQ(text_of(0, *aborted), "0 (9): aborted the job with code 9");
  const auto middle = node.at_end(1, true);
  ASSERT_TRUE(middle) << "others wait for it";
  EXPECT_EQ(text_of(1, *middle), "1 (1): ended without MPI_Finalize");
  EXPECT_FALSE(node.at_end(2, false)) << "its own failure says more";
  EXPECT_EQ(hear(second), "") << "it is not served any more";
}

TEST_F(PmiServiceTest, AProgramThatAsksForNothingIsWarnedOfOnce) {
  auto& node = start(0, 1, 2);
  const auto first = node.connect(0);
  const auto second = node.connect(1);
  EXPECT_FALSE(node.at_end(0, true));
  EXPECT_FALSE(node.at_end(1, true));
  EXPECT_THAT(said_, HasSubstr("local rank 0 has ended without asking for the others"));
  EXPECT_EQ(said_.find("local rank 1"), std::string::npos);
  said_.clear();
  auto& alone = start(0, 1, 1);
  const auto only = alone.connect(0);
  EXPECT_FALSE(alone.at_end(0, true));
  EXPECT_EQ(said_, "") << "who is alone need not ask";
}

TEST_F(PmiServiceTest, AWorkerThatReadsNoAnswersIsRefused) {
  auto& node = start(0, 1, 1);
  const auto worker = begun(node, 0);
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += "cmd=get_maxes\n";
  ASSERT_TRUE(until([&] {
    (void)!::send(worker.get(), many.data(), many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return !faults_[0].empty();
  }));
  EXPECT_THAT(faults_[0].front(), HasSubstr("broke PMI-1 by not reading the answers"));
}

TEST_F(PmiServiceTest, EachRoundHasASpaceOfItsOwn) {
  auto& node = start(0, 1, 1, 1);
  const auto before = begun(node, 0);
  const std::string space = space_of(ask(before, "cmd=get_my_kvsname"));
  (void)ask(before, "cmd=put kvsname=" + space + " key=k value=v");
  node.end();
  EXPECT_EQ(hear(before), "") << "whoever is left of it";
  begin(0, 0, 1, 1, 2);
  const auto after = begun(node, 0);
  const std::string next = space_of(ask(after, "cmd=get_my_kvsname"));
  EXPECT_NE(next, space);
  EXPECT_THAT(ask(after, "cmd=get kvsname=" + next + " key=k"), HasSubstr("key_not_found"));
  node.end();
  EXPECT_FALSE(node.at_end(0, true)) << "there is no round";
  auto& long_name = start(0, 1, 1, 1, std::string(1'000, 'x'));
  const auto worker = begun(long_name, 0);
  EXPECT_LE(space_of(ask(worker, "cmd=get_my_kvsname")).size(), 256U);
}

}  // namespace
}  // namespace drun::launcher
