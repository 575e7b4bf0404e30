// Certificates as the program openssl makes them: who is let in with them, and what is said of the
// others.
#include "secure/certificate.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "secure/given_tls.hpp"
#include "secure/tls_engine.hpp"
#include "support/certificates.hpp"

namespace drun::secure {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Failure = TlsEngine::Failure;
using Role = TlsEngine::Role;
using Context = std::shared_ptr<const TlsContext>;

const std::string kToken = "the-token-of-the-job-0123456789ab";

class CertificateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!site_.made()) GTEST_SKIP() << "this machine has no openssl";
  }
  [[nodiscard]] CertificateFiles files(const std::string& name = "own") const {
    return {site_.file(name + ".pem"), site_.file(name + ".key"), site_.authority()};
  }
  [[nodiscard]] static std::string error_of(const CertificateFiles& files) {
    const auto given = given_tls(std::nullopt, "", files);
    if (given) return "";
    EXPECT_TRUE(is_users(given.error()));
    return given.error().what();
  }
  [[nodiscard]] static Context context_of(const CertificateFiles& files) {
    auto given = given_tls(std::nullopt, "", files);
    EXPECT_TRUE(given) << given.error().what();
    return given ? given->tls : nullptr;
  }

  const test::Certificates site_;
};

struct Pair {
  Pair(Context of_client, Context of_server)
      : client(std::move(of_client), Role::Client), server(std::move(of_server), Role::Server) {}

  void carry() {
    while (!client.output().empty() || !server.output().empty()) {
      std::string bytes = std::exchange(client.output(), {});
      wire += bytes;
      server.receive(bytes, heard_by_server);
      bytes = std::exchange(server.output(), {});
      wire += bytes;
      client.receive(bytes, heard_by_client);
    }
  }
  [[nodiscard]] bool both_open() const { return client.is_open() && server.is_open(); }

  TlsEngine client;
  TlsEngine server;
  std::string heard_by_client{};
  std::string heard_by_server{};
  std::string wire{};
};

TEST_F(CertificateTest, WhoHasOneOfTheSameAuthorityIsHeardAndNobodyElseReadsIt) {
  ASSERT_TRUE(site_.issue("node1", test::Certificates::kBothUses));
  Pair pair(context_of(files()), context_of(files("node1")));
  pair.carry();
  ASSERT_TRUE(pair.both_open());
  pair.client.send("the question of an agent");
  pair.server.send("the answer of a store");
  pair.carry();
  EXPECT_EQ(pair.heard_by_server, "the question of an agent");
  EXPECT_EQ(pair.heard_by_client, "the answer of a store");
  for (const std::string text : {"question", "answer", "node1", "authority"})
    EXPECT_THAT(pair.wire, Not(HasSubstr(text)));
}

TEST_F(CertificateTest, OneForNoSpecialUseIsForBoth) {
  ASSERT_TRUE(site_.issue("any", ""));
  Pair pair(context_of(files("any")), context_of(files("any")));
  pair.carry();
  EXPECT_TRUE(pair.both_open());
}

TEST_F(CertificateTest, AnAuthorityBetweenComesWithTheCertificate) {
  ASSERT_TRUE(site_.issue("middle", "basicConstraints=critical,CA:true\n"));
  ASSERT_TRUE(site_.issue("leaf", test::Certificates::kBothUses, 30, "middle"));
  EXPECT_THAT(error_of(files("leaf")),
              HasSubstr("--tls-cert: the authorities of --tls-ca do not vouch for it: unable to "
                        "get local issuer certificate"));
  CertificateFiles chained = files("leaf");
  chained.certificate = site_.write("chain.pem", test::read_file(site_.file("leaf.pem")) +
                                                     test::read_file(site_.file("middle.pem")));
  Pair pair(context_of(chained), context_of(files()));
  pair.carry();
  EXPECT_TRUE(pair.both_open());
  Pair other_way(context_of(files()), context_of(chained));
  other_way.carry();
  EXPECT_TRUE(other_way.both_open());
}

// As a company's root may have signed it, and with that one everybody of the company takes part.
TEST_F(CertificateTest, TheAuthorityOfATeamIsTrustedWithoutTheOneAboveIt) {
  ASSERT_TRUE(site_.issue("team", "basicConstraints=critical,CA:true\n"));
  ASSERT_TRUE(site_.issue("member", test::Certificates::kBothUses, 30, "team"));
  CertificateFiles member = files("member");
  member.authorities = site_.file("team.pem");
  Pair pair(context_of(member), context_of(member));
  pair.carry();
  EXPECT_TRUE(pair.both_open());
  Pair other(context_of(files()), context_of(member));
  other.carry();
  EXPECT_FALSE(other.both_open()) << "of the same root, but not of the team";
}

TEST_F(CertificateTest, AnotherAuthorityIsToldOnBothSides) {
  const test::Certificates other;
  ASSERT_TRUE(other.made());
  const CertificateFiles theirs{other.certificate(), other.key(), other.authority()};
  Pair pair(context_of(theirs), context_of(files()));
  pair.carry();
  EXPECT_EQ(pair.client.failure(), Failure::Untrusted);
  EXPECT_EQ(pair.server.failure(), Failure::Refused);
  // A client that trusts both, and is trusted by one: it is done before the server has looked.
  CertificateFiles both = theirs;
  both.authorities = site_.write(
      "both.pem", test::read_file(site_.authority()) + test::read_file(other.authority()));
  Pair half(context_of(both), context_of(files()));
  half.carry();
  EXPECT_EQ(half.server.failure(), Failure::Untrusted);
  EXPECT_EQ(half.client.failure(), Failure::Refused);
  EXPECT_THAT(half.heard_by_server + half.heard_by_client, IsEmpty());
}

TEST_F(CertificateTest, WordsSentBeforeTheServerHasLookedAreNotHeard) {
  const test::Certificates other;
  CertificateFiles both{other.certificate(), other.key(),
                        site_.write("both.pem", test::read_file(site_.authority()) +
                                                    test::read_file(other.authority()))};
  Pair pair(context_of(both), context_of(files()));
  std::string bytes = std::exchange(pair.client.output(), {});
  pair.server.receive(bytes, pair.heard_by_server);
  bytes = std::exchange(pair.server.output(), {});
  pair.client.receive(bytes, pair.heard_by_client);
  ASSERT_TRUE(pair.client.is_open());
  pair.client.send("words");
  pair.carry();
  EXPECT_THAT(pair.heard_by_server, IsEmpty());
  EXPECT_EQ(pair.client.failure(), Failure::Refused);
}

TEST_F(CertificateTest, OneForAnotherUseIsNamedAsSuch) {
  ASSERT_TRUE(site_.issue("server", "extendedKeyUsage=serverAuth\n"));
  Pair as_client(context_of(files("server")), context_of(files()));
  as_client.carry();
  EXPECT_EQ(as_client.server.failure(), Failure::Unfit);
  EXPECT_EQ(as_client.client.failure(), Failure::Refused);
  Pair as_server(context_of(files()), context_of(files("server")));
  as_server.carry();
  EXPECT_TRUE(as_server.both_open());
}

TEST_F(CertificateTest, ATokenIsNoCertificateAndTheOtherWayRound) {
  const Context token = TlsContext::of(Token::from(kToken).value()).value();
  Pair to_token(context_of(files()), token);
  to_token.carry();
  EXPECT_EQ(to_token.client.failure(), Failure::NoCertificate);
  EXPECT_EQ(to_token.server.failure(), Failure::Stranger);
  Pair to_certificate(token, context_of(files()));
  to_certificate.carry();
  EXPECT_EQ(to_certificate.client.failure(), Failure::OtherToken);
  EXPECT_EQ(to_certificate.server.failure(), Failure::Refused);
  TlsEngine to_neither(context_of(files()), Role::Client);
  std::string heard;
  to_neither.receive(kNoTokenAnswer, heard);
  EXPECT_EQ(to_neither.failure(), Failure::NoCertificate);
  TlsEngine to_plain(context_of(files()), Role::Client);
  to_plain.receive("HTTP/1.1 400 Bad Request\r\n", heard);
  EXPECT_EQ(to_plain.failure(), Failure::NoCertificate);
}

TEST_F(CertificateTest, WhatIsWrongWithTheFilesIsSaid) {
  ASSERT_TRUE(site_.issue("old", test::Certificates::kBothUses, -1));
  ASSERT_TRUE(site_.issue("other", test::Certificates::kBothUses));
  const std::string text = site_.write("text", "no PEM\n");
  ASSERT_EQ(::chmod(text.c_str(), 0600), 0);
  CertificateFiles given = files("old");
  EXPECT_THAT(
      error_of(given),
      HasSubstr(
          "--tls-cert: the authorities of --tls-ca do not vouch for it: certificate has expired"));
  given = files();
  given.key = site_.file("other.key");
  EXPECT_THAT(error_of(given), HasSubstr("--tls-key: it is not the key of the certificate"));
  given.key = site_.locked_key();
  EXPECT_THAT(error_of(given),
              HasSubstr("--tls-key: there is no key in PEM in it, or it has a passphrase"));
  given.key = text;
  EXPECT_THAT(error_of(given), HasSubstr("--tls-key: there is no key in PEM in it"));
  given = files();
  given.certificate = text;
  EXPECT_THAT(error_of(given), HasSubstr("--tls-cert: there is no certificate in PEM in it"));
  given = files();
  given.authorities = text;
  EXPECT_THAT(error_of(given), HasSubstr("--tls-ca: there is no certificate in PEM in it"));
  const std::string half = test::read_file(site_.authority());
  given.authorities = site_.write("cut.pem", half + half.substr(0, half.size() / 2));
  EXPECT_THAT(error_of(given), HasSubstr("--tls-ca: its certificate 2 is damaged"));
  given.authorities = site_.write("open.pem", half);
  ASSERT_EQ(::chmod(given.authorities.c_str(), 0666), 0);
  EXPECT_THAT(error_of(given), HasSubstr("others may change it (mode 0666): chmod 644"));
  given.authorities = "/nowhere";
  EXPECT_EQ(error_of(given), "--tls-ca /nowhere: No such file or directory");
  given.authorities = site_.write("large", std::string(2'000'000, 'x'));
  EXPECT_THAT(error_of(given), HasSubstr("it is too long"));
  given.authorities = site_.write("binary", std::string("\0\0", 2));
  EXPECT_THAT(error_of(given), HasSubstr("it is no text"));
  given.authorities = "";
  EXPECT_EQ(error_of(given), "--tls-ca is missing: --tls-cert, --tls-key and --tls-ca go together");
  EXPECT_THAT(error_of({"", "key", "ca"}), HasSubstr("--tls-cert is missing"));
  EXPECT_THAT(error_of({"cert", "", "ca"}), HasSubstr("--tls-key is missing"));
}

TEST_F(CertificateTest, TheKeyIsNobodyElses) {
  ASSERT_EQ(::chmod(site_.key().c_str(), 0644), 0);
  EXPECT_THAT(error_of(files()), HasSubstr("others may use it (mode 0644): chmod 600"));
  ASSERT_EQ(::chmod(site_.key().c_str(), 0640), 0);
  const std::string of_group = error_of(files());
  if (::geteuid() == 0)
    EXPECT_EQ(of_group, "") << "a file of root's may be for its group to read";
  else
    EXPECT_THAT(of_group, HasSubstr("(mode 0640)"));
  ASSERT_EQ(::chmod(site_.key().c_str(), 0660), 0);
  EXPECT_THAT(error_of(files()), HasSubstr("(mode 0660)"));
}

TEST_F(CertificateTest, ItIsTheOneOrTheOther) {
  const auto given = given_tls(Token::from(kToken), "", files());
  ASSERT_FALSE(given);
  EXPECT_THAT(given.error().what(), HasSubstr("there are a token and a certificate"));
  EXPECT_TRUE(is_users(given.error()));
}

TEST_F(CertificateTest, TheSecretIsEnoughForAHelper) {
  const Context context = context_of(files());
  EXPECT_TRUE(context->has_certificate());
  auto copy = TlsContext::of_secret(context->secret());
  ASSERT_TRUE(copy) << copy.error().what();
  EXPECT_TRUE((*copy)->has_certificate());
  Pair pair(*copy, context);
  pair.carry();
  EXPECT_TRUE(pair.both_open());
  EXPECT_THAT(context->page_key(), SizeIs(64));
  EXPECT_EQ(context->page_key(), (*copy)->page_key());
}

}  // namespace
}  // namespace drun::secure
