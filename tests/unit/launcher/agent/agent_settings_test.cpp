#include "launcher/agent/agent_settings.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unix_time.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/watch/hang_watch.hpp"
#include "rendezvous/documents.hpp"

namespace drun::launcher {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

// What is between the two clocks.
std::int64_t offset_now_ms() {
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return unix_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(steady).count();
}

TEST(AgentSettingsTest, TellsTheOthersWhoThisNodeIs) {
  Options options;
  options.shutdown_timeout = seconds(7);
  NodeIdentity node;
  node.host_name = "node7";
  node.ticket = "abc";
  node.address = "10.0.0.7";
  node.worker_store_port = 4711;
  node.hosting = true;
  const auto config = rendezvous_config(options, node, seconds(9));
  EXPECT_EQ(config.host, "node7");
  EXPECT_EQ(config.address, "10.0.0.7");
  EXPECT_EQ(config.worker_store_port, 4711);
  EXPECT_TRUE(config.is_host);
  EXPECT_EQ(config.join_timeout, seconds(9));
  EXPECT_EQ(config.given_join_timeout, seconds(600));
  EXPECT_GT(config.stop_timeout, options.shutdown_timeout);
  EXPECT_EQ(config.ticket, "abc");
}

TEST(AgentSettingsTest, HandsOverWhatTheUserSaysOfTheJob) {
  Options options;
  options.run_id = "job17";
  options.min_nodes = 3;
  options.max_nodes = 5;
  options.nproc_per_node = 4;
  options.max_restarts = 6;
  options.max_losses = 7;
  options.min_runtime = seconds(8);
  options.role = "trainer";
  options.node_rank = 2;
  options.node_rank_is_wish = true;
  options.worker_store = WorkerStore::Rank0;
  options.conf.last_call_timeout = seconds(11);
  options.conf.close_timeout = seconds(13);
  options.rank_order = rendezvous::RankOrder::Join;
  options.resize = rendezvous::Resize::Restart;
  options.exit_code = rendezvous::ExitCodePolicy::Highest;
  const auto config = rendezvous_config(options, {}, seconds(9));
  EXPECT_EQ(config.run_id, "job17");
  EXPECT_EQ(config.min_nodes, 3);
  EXPECT_EQ(config.max_nodes, 5);
  EXPECT_EQ(config.local_world_size, 4);
  EXPECT_EQ(config.max_restarts, 6);
  EXPECT_EQ(config.max_losses, 7);
  EXPECT_EQ(config.min_runtime, seconds(8));
  EXPECT_EQ(config.role, "trainer");
  EXPECT_EQ(config.node_rank, 2);
  EXPECT_TRUE(config.node_rank_is_wish);
  EXPECT_EQ(config.agreement.at("worker-store"), "rank0");
  EXPECT_EQ(config.last_call_timeout, seconds(11));
  EXPECT_EQ(config.close_timeout, seconds(13));
  EXPECT_EQ(config.rank_order, rendezvous::RankOrder::Join);
  EXPECT_EQ(config.resize, rendezvous::Resize::Restart);
  EXPECT_EQ(config.exit_code, rendezvous::ExitCodePolicy::Highest);
}

TEST(AgentSettingsTest, SaysWhereTheNodeIsAndToWhichGroupItBelongs) {
  Options options;
  options.node_step = 4;
  options.network = std::string(600, 's');
  options.job_flags = "--rdzv-id j";
  options.replica_groups = 3;
  const auto config = rendezvous_config(options, {}, seconds(9));
  EXPECT_EQ(config.node_step, 4);
  EXPECT_EQ(config.network, std::string(rendezvous::kMaxNetwork, 's')) << "more is malformed";
  EXPECT_EQ(config.job_flags, "--rdzv-id j");
  EXPECT_EQ(config.agreement.at("replica-groups"), "3");
  EXPECT_FALSE(rendezvous_config({}, {}, seconds(9)).agreement.contains("replica-groups"));
}

// What is done about a hang: by a node that looks for them in any way.
TEST(AgentSettingsTest, WhatBecomesOfAHangIsTheSameOnAllNodes) {
  Options options;
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).agreement.contains("on-hang"));
  options.heartbeats.next = seconds(1);
  options.on_hang = OnHang::Stop;
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).agreement.at("on-hang"), "stop");
  options.on_hang = OnHang::Report;
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).agreement.at("on-hang"), "report");
}

TEST(AgentSettingsTest, HandsOverWhatTheUserSaysOfTheMachines) {
  Options options;
  options.max_nodes = 4;
  options.exclude_after = 5;
  options.excluded_hosts = {{"bad1", "its disk"}, {"bad2", "its fan"}};
  options.hang_timeout = seconds(60);
  options.conf.successors = 3;
  options.conf.quorum = 2;
  options.conf.keep_alive_interval = seconds(4);
  options.local_node = 0;
  options.endpoints = {{"a", 1}, {"b", 2}, {"c", 3}};
  NodeIdentity node;
  node.successor_port = 4'712;
  node.listed = 2;
  const auto config = rendezvous_config(options, node, seconds(9));
  EXPECT_EQ(config.exclude_after, 5);
  EXPECT_EQ(config.excluded_hosts, options.excluded_hosts);
  EXPECT_EQ(config.hang_timeout, seconds(60));
  EXPECT_EQ(config.successors, successors(options));
  EXPECT_EQ(config.successor_port, 4'712);
  EXPECT_EQ(config.listed, 2);
  EXPECT_EQ(config.keep_alive, keep_alive(options, false));
  EXPECT_GT(config.search_timeout, config.keep_alive) << "the link gives up before";
  EXPECT_TRUE(config.stands_at_once);
  EXPECT_EQ(config.agreement.at("rdzv-endpoint"), meeting_place(options));
  EXPECT_EQ(config.agreement.at("rdzv-conf"),
            "successors=" + std::to_string(config.successors) + ",quorum=2");
  EXPECT_NEAR(static_cast<double>(config.unix_offset_ms), static_cast<double>(offset_now_ms()),
              60'000);
  const auto plain = rendezvous_config({}, {}, seconds(9));
  EXPECT_EQ(plain.hang_timeout, seconds(0));
  EXPECT_FALSE(plain.stands_at_once);
  EXPECT_FALSE(plain.agreement.contains("rdzv-endpoint"));
  EXPECT_EQ(plain.agreement.at("rdzv-conf"), "successors=" + std::to_string(plain.successors));
}

// A job of one node has no rank to wish for.
TEST(AgentSettingsTest, TheOnlyNodeIsTheFirst) {
  Options options;
  options.node_rank = 3;
  options.node_rank_is_wish = true;
  const auto config = rendezvous_config(options, {}, seconds(9));
  EXPECT_EQ(config.node_rank, 0);
  EXPECT_FALSE(config.node_rank_is_wish);
}

TEST(AgentSettingsTest, NodesOfOneJobHaveTheSameFrameworks) {
  const auto agreed = [](bool mpi, bool tensorflow) {
    Options options;
    options.frameworks.mpi = mpi;
    options.frameworks.tensorflow = tensorflow;
    const auto config = rendezvous_config(options, {}, seconds(9));
    const auto found = config.agreement.find("framework");
    return found == config.agreement.end() ? "" : found->second;
  };
  EXPECT_EQ(agreed(false, false), "");
  EXPECT_EQ(agreed(true, false), "mpi");
  EXPECT_EQ(agreed(false, true), "tensorflow");
  EXPECT_EQ(agreed(true, true), "mpi,tensorflow");
}

TEST(AgentSettingsTest, NodesThatAreSortedOutAreComparedByAll) {
  Options options;
  options.preflight = Preflight::Strict;
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).unfit) << "there are no others";
  options.max_nodes = 2;
  EXPECT_TRUE(rendezvous_config(options, {}, seconds(9)).unfit);
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).agreement.at("preflight"), "strict");
  options.preflight = Preflight::Warn;
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).unfit);
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).agreement.contains("preflight"));
}

TEST(AgentSettingsTest, HandsOverWhatTheUserSaysOfTheOutput) {
  Options options;
  options.run_id = "job17";
  options.quiet = true;
  options.output.tail_lines = 7;
  options.output.fold = true;
  const auto output = output_options(options, "node7");
  EXPECT_EQ(output.run_id, "job17");
  EXPECT_EQ(output.host, "node7");
  EXPECT_TRUE(output.terminal);
  EXPECT_TRUE(output.quiet);
  EXPECT_EQ(output.choices.tail_lines, 7U);
  EXPECT_TRUE(output.choices.fold);
}

// What a node does before the grace of its workers begins.
TEST(AgentSettingsTest, ANodeThatLooksAtItsWorkersIsWaitedFor) {
  Options options;
  options.stacks_limit = seconds(4);
  options.inherited = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/pipe_"};
  const auto stop_timeout = [&options] {
    return rendezvous_config(options, {}, seconds(9)).stop_timeout;
  };
  const auto none = stop_timeout();
  options.stacks_after_failure = true;
  EXPECT_EQ(stop_timeout(), none + seconds(4));
  options.stacks_after_failure = false;
  options.file_timers = true;
  EXPECT_EQ(stop_timeout(), none + HangWatch::kDumpsAtMost) << "dumps are written beside it";
  options.stacks_limit = seconds(40);
  EXPECT_EQ(stop_timeout(), none + seconds(40));
  options.inherited.clear();
  options.stacks_limit = seconds(4);
  EXPECT_EQ(stop_timeout(), none + seconds(4));
}

TEST(AgentSettingsTest, EtcdIsNotLostButEndsSessions) {
  Options options;
  options.max_nodes = 2;
  for (const auto backend : {Backend::C10d, Backend::Etcd}) {
    options.backend = backend;
    const auto config = rendezvous_config(options, {}, seconds(9));
    EXPECT_EQ(config.store_can_be_lost, backend == Backend::C10d);
    EXPECT_EQ(config.sessions_can_end_early, backend == Backend::Etcd);
    EXPECT_EQ(config.ends_are_heard, backend != Backend::Etcd) << "no agent hosts an etcd";
  }
}

// What a user reads who waits for other machines; where there are none it would say nothing.
TEST(AgentSettingsTest, NamesTheEndpointOnlyWhereOtherMachinesAreWaitedFor) {
  Options options;
  options.endpoint = {"node0", 29400};
  options.max_nodes = 2;
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).endpoint, "node0:29400");
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).endpoint_is_local);
  options.endpoint.host = "localhost";
  EXPECT_TRUE(rendezvous_config(options, {}, seconds(9)).endpoint_is_local);
  options.backend = Backend::Etcd;
  EXPECT_FALSE(rendezvous_config(options, {}, seconds(9)).endpoint_is_local) << "of each machine";
  options.backend = Backend::C10d;
  options.local_node = 1;
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).endpoint, "");
  options.local_node = -1;
  options.max_nodes = 1;
  EXPECT_EQ(rendezvous_config(options, {}, seconds(9)).endpoint, "");
}

TEST(AgentSettingsTest, TakesTheTemporaryFolderFromTheEnvironment) {
  Options options;
  options.inherited = {"TMP=/least", "TMPDIR=/scratch", "TMPDIRS=/other", "TEMP=/less"};
  EXPECT_THAT(output_options(options, "node7").temporary,
              ElementsAre("/scratch", "/less", "/least", "/tmp", "/var/tmp"));
  options.inherited = {"TMPDIR="};
  EXPECT_EQ(output_options(options, "node7").temporary, OutputOptions().temporary);
}

TEST(AgentSignalsTest, ForwardsWhatWasAskedForAndStopsForTheRest) {
  Options options;
  options.forward_signals = {SIGUSR1};
  EXPECT_EQ(meaning_of(SIGUSR1, options), SignalMeaning::Forward);
  EXPECT_EQ(meaning_of(SIGUSR2, options), SignalMeaning::Stop);
  EXPECT_EQ(meaning_of(SIGTERM, options), SignalMeaning::Stop);
  EXPECT_EQ(meaning_of(SIGWINCH, options), SignalMeaning::Resize);
  EXPECT_EQ(meaning_of(SIGTSTP, options), SignalMeaning::Suspend);
}

}  // namespace
}  // namespace drun::launcher
