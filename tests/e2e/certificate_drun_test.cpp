// Jobs with certificates in place of a token.
#include <signal.h>

#include <cstddef>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "support/certificates.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kToken = "the-token-of-the-job-0123456789ab";

class CertificateDrunTest : public AgentsOfAJob {
 protected:
  void SetUp() override {
    if (!site_.made()) GTEST_SKIP() << "this machine has no openssl";
  }
  [[nodiscard]] Arguments job(const std::string& nodes, const Arguments& more = {}) const {
    return Arguments{"--nnodes",       nodes,       "--rdzv-endpoint",
                     port_.endpoint(), "--rdzv-id", "the-name"} +
           more;
  }
  static Arguments of(const Certificates& site) {
    return {"--tls-cert", site.certificate(), "--tls-key",
            site.key(),   "--tls-ca",         site.authority()};
  }
  void start_host() {
    start(job("2", of(site_)) + telling_workers());
    ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  }
  // An agent that comes to the host is refused at once, and each says why.
  void expect_refused(const Launch& launch, const Arguments& flags, const std::string& why,
                      const std::string& said_by_host) {
    DrunProcess guest(job("2", Arguments{"--rdzv-conf", "is_host=0"} + flags) + telling_workers(),
                      launch);
    const Finished finished = guest.finish();
    EXPECT_EQ(finished.code, 125) << finished.err;
    EXPECT_THAT(finished.err,
                HasSubstr("drun: error: the store at " + port_.endpoint() + " " + why));
    EXPECT_TRUE(agent(0).wait_for_err(said_by_host)) << agent(0).err();
    EXPECT_TRUE(agent(0).running());
  }
  Finished drunctl(const Arguments& arguments) const {
    Launch launch;
    launch.argv = Arguments{places::program("drunctl"), "--endpoint", port_.endpoint()} + arguments;
    return DrunProcess(launch).finish();
  }

  const Certificates site_;
  const ReservedPort port_;
};

TEST_F(CertificateDrunTest, AgentsWithCertificatesOfOneAuthorityRunAJob) {
  ASSERT_TRUE(site_.issue("node1", Certificates::kBothUses));
  const Arguments program{"sh", "-c", "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR"};
  start(job("2", of(site_)) + program);
  start(job("2", {"--tls-cert", site_.file("node1.pem"), "--tls-key", site_.file("node1.key"),
                  "--tls-ca", site_.authority()}) +
        program);
  for (std::size_t i = 0; i < 2; ++i) {
    const Finished finished = agent(i).finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr(" of 2 at 127.0.0.1\n"))
        << "their own agent speaks for them";
  }
}

TEST_F(CertificateDrunTest, WhoeverHasNoneIsOneLineOnBothSides) {
  ASSERT_NO_FATAL_FAILURE(start_host());
  expect_refused({}, {},
                 "asks for a certificate: give --tls-cert, --tls-key and --tls-ca on every node",
                 "it shows no certificate, which this store asks for");
  const Certificates other;
  expect_refused({}, of(other),
                 "has a certificate for which the authorities of --tls-ca do not vouch",
                 "it does not accept this store's certificate");
  const std::string both =
      site_.write("both.pem", read_file(site_.authority()) + read_file(other.authority()));
  expect_refused({},
                 {"--tls-cert", other.certificate(), "--tls-key", other.key(), "--tls-ca", both},
                 "does not accept the certificate of --tls-cert: its log says why",
                 "the authorities of --tls-ca do not vouch for its certificate");
  Launch with_token;
  with_token.environment = {"DRUN_TOKEN=" + kToken};
  expect_refused(with_token, {}, "does not know this token",
                 "it does not accept this store's certificate");
  stop_all(0);
}

TEST_F(CertificateDrunTest, DrunctlNeedsOne) {
  ASSERT_NO_FATAL_FAILURE(start_host());
  const Finished status = drunctl(of(site_) + Arguments{"status"});
  EXPECT_THAT(status.out, HasSubstr("job the-name")) << status.err;
  EXPECT_EQ(drunctl(of(site_) + Arguments{"set", "key", "value"}).code, 0);
  EXPECT_EQ(drunctl(of(site_) + Arguments{"get", "key"}).out, "value");
  const Finished without = drunctl({"status"});
  EXPECT_EQ(without.code, 125);
  EXPECT_THAT(without.err, HasSubstr("it asks for a certificate: give --tls-cert"));
  const Finished half = drunctl({"--tls-cert", site_.certificate(), "status"});
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.err, HasSubstr("--tls-key is missing"));
  stop_all(0);
}

// With such a lease only the word of the dead node's helpers lets the others go on in time: they
// have the certificate, too, and so have those who serve the next store.
TEST_F(CertificateDrunTest, TheOthersGoOnWhenTheHostDies) {
  const Arguments arguments =
      job("2:3", of(site_) + Arguments{"--rdzv-conf",
                                       "last_call_timeout=0.3,successors=3,keep_alive_interval=60,"
                                       "keep_alive_max_attempt=10"}) +
      telling_workers();
  start(arguments);
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  start(arguments);
  start(arguments);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(says(i, " of 3 ")) << agent(i).err();
  agent(0).signal(SIGKILL);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(says(i, " of 2 ")) << agent(i).err();
  EXPECT_THAT(agent(1).err() + agent(2).err(), HasSubstr(" (group rank 0) is gone"));
  EXPECT_TRUE(agent(0).survivors_gone(kPatience));
  EXPECT_TRUE(agent(0).wait());
  stop_all(1);
}

TEST_F(CertificateDrunTest, WrongFilesAreAUsageErrorBeforeAnythingBegins) {
  DrunProcess half({"--tls-cert", site_.certificate(), "true"});
  EXPECT_EQ(half.finish().code, 2);
  EXPECT_THAT(half.err(),
              HasSubstr("--tls-key is missing: --tls-cert, --tls-key and --tls-ca go together"));
  Launch with_token;
  with_token.environment = {"DRUN_TOKEN=" + kToken};
  DrunProcess two(of(site_) + Arguments{"true"}, with_token);
  EXPECT_EQ(two.finish().code, 2);
  EXPECT_THAT(two.err(),
              AllOf(HasSubstr("there are a token and a certificate"), Not(HasSubstr(kToken))));
}

}  // namespace
}  // namespace drun::test
