// Where no session comes about: one line says why, and no password is in it.
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "etcd_client.hpp"
#include "support/certificates.hpp"

namespace drun::etcd::test {
namespace {

using drun::test::EtcdCluster;
using rendezvous::CommitOutcome;
using rendezvous::Link;
using rendezvous::Transaction;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EtcdRefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "this machine has no etcd-server";
  }
  void start(const drun::test::Arguments& more = {}, std::size_t members = 1) {
    cluster = std::make_unique<EtcdCluster>(members, more);
    ASSERT_TRUE(cluster->ready()) << cluster->logs();
  }
  void ask_for_users() {
    start();
    (void)cluster->post("/v3/auth/user/add", R"({"name":"root","password":"opensesame"})");
    (void)cluster->post("/v3/auth/role/add", R"({"name":"root"})");
    (void)cluster->post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
    (void)cluster->post("/v3/auth/user/add", R"({"name":"guest","password":"guestpass"})");
    ASSERT_THAT(cluster->post("/v3/auth/enable", "{}"), HasSubstr("header"));
  }
  // What it says when it fails.
  static std::string failure(const EtcdOptions& options) {
    EtcdClient client(options);
    if (!client.until_link(Link::Failed)) return "it did not fail";
    return client.all<rendezvous::LinkEvent>().back().detail;
  }
  [[nodiscard]] EtcdOptions as(const std::string& user, const std::string& password) const {
    EtcdOptions options = options_for(*cluster);
    options.cluster.user = user;
    options.cluster.password = password;
    return options;
  }

  std::unique_ptr<EtcdCluster> cluster;
};

TEST_F(EtcdRefusalTest, NobodyListens) {
  const drun::test::ReservedPort port;
  EtcdOptions options;
  options.cluster.endpoints = {{"127.0.0.1", static_cast<std::uint16_t>(port.number())}};
  options.connect_timeout = std::chrono::seconds(1);
  EXPECT_THAT(failure(options), AllOf(HasSubstr("could not reach etcd at 127.0.0.1:"),
                                      HasSubstr("Connection refused")));
}

TEST_F(EtcdRefusalTest, ANameThatDoesNotExist) {
  EtcdOptions options;
  options.cluster.endpoints = {{"no-such-host.invalid", 2379}};
  EtcdClient client(options);
  EXPECT_TRUE(client.until([&] {  // the resolver has its own time
    return client->last_error().starts_with("cannot look up 'no-such-host.invalid': ");
  })) << client->last_error();
}

TEST_F(EtcdRefusalTest, NoMajority) {
  ASSERT_NO_FATAL_FAILURE(start({}, 3));
  cluster->kill(0);
  cluster->kill(1);
  EtcdOptions options = options_for(*cluster);
  options.connect_timeout = std::chrono::seconds(12);
  EXPECT_THAT(failure(options),
              AllOf(HasSubstr("could not reach etcd at "), HasSubstr(" within ")));
}

TEST_F(EtcdRefusalTest, AUserIsAskedFor) {
  ASSERT_NO_FATAL_FAILURE(ask_for_users());
  EXPECT_THAT(failure(options_for(*cluster)),
              HasSubstr("check username and password in --rdzv-conf"));
  EXPECT_THAT(failure(as("root", "opensesamE")),
              AllOf(HasSubstr("authentication failed"), Not(HasSubstr("opensesamE"))));
  EXPECT_THAT(failure(as("guest", "guestpass")), HasSubstr("permission denied"));
}

TEST_F(EtcdRefusalTest, TheRightUserIsLetIn) {
  ASSERT_NO_FATAL_FAILURE(ask_for_users());
  EtcdClient client(as("root", "opensesame"));
  ASSERT_TRUE(client.until_link(Link::Up));
  client->watch(1, "drun/test/", true);
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1")};
  EXPECT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  EXPECT_TRUE(client.until([&] { return !client.all<rendezvous::WatchChanges>().empty(); }));
}

TEST_F(EtcdRefusalTest, AUserWhoIsNotAskedFor) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_THAT(failure(as("root", "opensesame")), HasSubstr("authentication is not enabled"));
}

TEST_F(EtcdRefusalTest, TlsAndItsMistakes) {
  ASSERT_NO_FATAL_FAILURE(start({"--auto-tls"}));
  EtcdOptions options = options_for(*cluster);
  EXPECT_THAT(failure(options), HasSubstr("if it speaks TLS, say protocol=https in --rdzv-conf"));
  options.cluster.tls.used = true;
  EXPECT_THAT(failure(options), HasSubstr("certificate"));
  options.cluster.tls.ca_file = "/no/such/file.pem";
  EXPECT_THAT(failure(options), HasSubstr("/no/such/file.pem"));
  options.cluster.tls.ca_file = cluster->certificate(0);
  EtcdClient client(options);
  ASSERT_TRUE(client.until_link(Link::Up)) << client.all<rendezvous::LinkEvent>().back().detail;
  EXPECT_FALSE(client->farewell());  // whoever is left speaks no TLS
  client->watch(1, "drun/test/", true);
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1")};
  EXPECT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  EXPECT_TRUE(client.until([&] { return !client.all<rendezvous::WatchChanges>().empty(); }));
}

// Their own authority has signed the members' certificates and those of whom they let in.
TEST_F(EtcdRefusalTest, ClientsMayNeedACertificateOfTheirOwn) {
  const drun::test::Certificates own;
  const drun::test::Certificates foreign;
  if (!own.made() || !foreign.made()) GTEST_SKIP() << "this machine has no openssl";
  ASSERT_NO_FATAL_FAILURE(start({"--cert-file", own.certificate(), "--key-file", own.key(),
                                 "--trusted-ca-file", own.authority(), "--client-cert-auth"}));
  EtcdOptions options = options_for(*cluster);
  options.cluster.tls.used = true;
  options.cluster.tls.ca_file = own.authority();
  const Tls without = options.cluster.tls;
  options.cluster.tls.certificate_file = own.certificate();
  options.cluster.tls.key_file = own.key();
  {
    EtcdClient client(options);
    ASSERT_TRUE(client.until_link(Link::Up)) << client->last_error();
    Transaction transaction;
    transaction.writes = {ephemeral("drun/test/a", "1")};
    EXPECT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  }
  options.cluster.tls.key_file = foreign.key();
  EXPECT_THAT(failure(options), HasSubstr("etcd at 127.0.0.1:"));
  options.cluster.tls.key_file = own.locked_key();
  EXPECT_THAT(failure(options), HasSubstr("etcd at 127.0.0.1:"));
  options.cluster.tls = without;
  EXPECT_THAT(failure(options), HasSubstr("alert"));
}

TEST_F(EtcdRefusalTest, TlsToOneThatHasNone) {
  ASSERT_NO_FATAL_FAILURE(start());
  EtcdOptions options = options_for(*cluster);
  options.cluster.tls.used = true;
  EXPECT_THAT(failure(options), HasSubstr("if it speaks none, say protocol=http"));
}

}  // namespace
}  // namespace drun::etcd::test
