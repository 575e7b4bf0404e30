#include "launcher/agent/agent_settings.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/agent/agent_signals.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

TEST(AgentSettingsTest, KeepsAPrivateStoreForAsLongAsTheJobIsSuspended) {
  Options options;
  options.backend = Backend::Standalone;
  EXPECT_GE(store_options(options, {}, seconds(5)).keep_alive, std::chrono::hours(24 * 365));
  options.backend = Backend::C10d;
  options.conf.keep_alive_interval = seconds(2);
  options.conf.keep_alive_max_attempt = 4;
  EXPECT_EQ(store_options(options, {}, seconds(5)).keep_alive, seconds(8));
  options.local_node = 1;
  EXPECT_GE(store_options(options, {}, seconds(5)).keep_alive, std::chrono::hours(24 * 365));
}

TEST(AgentSettingsTest, LetsTheSessionOutliveTheAgentsOwnLimit) {
  Options options;
  options.backend = Backend::C10d;
  const auto store = store_options(options, Endpoint{"10.0.0.1", 29500}, seconds(5));
  EXPECT_GT(store.time_to_live, store.keep_alive);
  EXPECT_EQ(store.endpoint.host, "10.0.0.1");
  EXPECT_EQ(store.connect_timeout, seconds(5));
  EXPECT_EQ(store_options(options, {}, seconds(-1)).connect_timeout, milliseconds(0));
}

TEST(AgentSettingsTest, TellsTheOthersWhoThisNodeIs) {
  Options options;
  options.shutdown_timeout = seconds(7);
  NodeIdentity node;
  node.host_name = "node7";
  node.address = "10.0.0.7";
  node.worker_port = 4711;
  node.hosting = true;
  const auto config = rendezvous_config(options, node, seconds(9));
  EXPECT_EQ(config.host, "node7");
  EXPECT_EQ(config.address, "10.0.0.7");
  EXPECT_EQ(config.worker_port, 4711);
  EXPECT_TRUE(config.is_host);
  EXPECT_EQ(config.join_timeout, seconds(9));
  EXPECT_GT(config.stop_timeout, options.shutdown_timeout);
  EXPECT_EQ(config.ticket.size(), 32U);
  EXPECT_NE(config.ticket, rendezvous_config(options, node, seconds(9)).ticket);
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
