#include "store/relay/relay_flow.hpp"

#include <memory>
#include <new>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "secure/tls_engine.hpp"
#include "store/protocol/control_protocol.hpp"
#include "support/scarce_memory.hpp"
#include "support/tls_peer.hpp"

namespace drun::store {
namespace {

using testing::HasSubstr;
using testing::Not;
using Side = RelayFlow::Side;
using Fault = RelayFlow::Fault;
using Engine = secure::TlsEngine;

// All that goes there now.
std::string sent(RelayFlow& flow, Side to) {
  std::string all;
  for (auto bytes = flow.output(to); !bytes.empty(); bytes = flow.output(to)) {
    all += bytes;
    flow.on_sent(to, bytes.size());
  }
  return all;
}

std::string opening() {
  std::string bytes;
  control::encode_opening(bytes);
  return bytes;
}

TEST(RelayFlowTest, PassesOnWhatBothSidesSay) {
  RelayFlow flow(nullptr);
  flow.on_store();
  flow.take(Side::Client, "question");
  EXPECT_EQ(sent(flow, Side::Store), "question");
  flow.take(Side::Store, "answer");
  EXPECT_EQ(sent(flow, Side::Client), "answer");
  EXPECT_EQ(sent(flow, Side::Store), "");
  EXPECT_EQ(flow.fault(), Fault::None);
}

TEST(RelayFlowTest, AClientThatGoesBeforeThereIsAStoreIsNotKept) {
  RelayFlow flow(nullptr);
  EXPECT_FALSE(flow.is_deserted());
  flow.take(Side::Client, "last words");
  flow.end(Side::Client);
  EXPECT_FALSE(flow.is_deserted()) << "the store is to hear them";
  RelayFlow silent(nullptr);
  silent.end(Side::Client);
  EXPECT_TRUE(silent.is_deserted());
  silent.on_store();
  EXPECT_FALSE(silent.is_deserted()) << "it is told of the end";
}

// The store closes a connection whose bytes make no sense.
TEST(RelayFlowTest, IsOverWhenTheClientEndsAfterTheStore) {
  RelayFlow flow(nullptr);
  flow.on_store();
  flow.take(Side::Client, "nonsense");
  EXPECT_EQ(sent(flow, Side::Store), "nonsense");
  EXPECT_FALSE(flow.lost_store());
  flow.end(Side::Store);
  EXPECT_TRUE(flow.take_end(Side::Client));
  flow.take(Side::Client, "more");
  flow.end(Side::Client);
  (void)sent(flow, Side::Store);
  EXPECT_TRUE(flow.take_end(Side::Store));
  EXPECT_TRUE(flow.is_over());
}

TEST(RelayFlowTest, KeepsWhatTheClientSaysUntilThereIsAStore) {
  RelayFlow flow(nullptr);
  flow.take(Side::Client, "early");
  EXPECT_EQ(sent(flow, Side::Store), "");
  EXPECT_FALSE(flow.wants(Side::Store));
  flow.end(Side::Client);
  EXPECT_FALSE(flow.take_end(Side::Store));
  flow.on_store();
  EXPECT_EQ(sent(flow, Side::Store), "early");
  EXPECT_TRUE(flow.take_end(Side::Store));
}

TEST(RelayFlowTest, ReadsNoMoreThanTheOtherSideTakes) {
  RelayFlow flow(nullptr);
  flow.on_store();
  flow.take(Side::Client, std::string(RelayFlow::kAtOnce, 'x'));
  EXPECT_FALSE(flow.wants(Side::Client));
  flow.on_sent(Side::Store, 1);
  EXPECT_TRUE(flow.wants(Side::Client));
  flow.take(Side::Store, "ab");
  EXPECT_FALSE(flow.wants(Side::Store));
  flow.on_sent(Side::Client, 1);
  EXPECT_EQ(flow.output(Side::Client), "b");
  EXPECT_FALSE(flow.wants(Side::Store));
  flow.on_sent(Side::Client, 1);
  EXPECT_TRUE(flow.wants(Side::Store));
}

TEST(RelayFlowTest, PassesOnTheEndOfEachSideBehindWhatItSaid) {
  RelayFlow flow(nullptr);
  flow.on_store();
  flow.take(Side::Client, "last");
  flow.end(Side::Client);
  EXPECT_FALSE(flow.wants(Side::Client));
  EXPECT_FALSE(flow.take_end(Side::Store));
  EXPECT_EQ(sent(flow, Side::Store), "last");
  EXPECT_TRUE(flow.take_end(Side::Store));
  EXPECT_FALSE(flow.take_end(Side::Store)) << "once";
  EXPECT_FALSE(flow.is_over());
  flow.take(Side::Store, "reply");
  flow.end(Side::Store);
  EXPECT_FALSE(flow.take_end(Side::Client));
  EXPECT_EQ(sent(flow, Side::Client), "reply");
  EXPECT_TRUE(flow.take_end(Side::Client));
  EXPECT_TRUE(flow.is_over());
}

TEST(RelayFlowTest, WhatALostClientHasSaidArrives) {
  RelayFlow flow(nullptr);
  flow.on_store();
  flow.take(Side::Store, "unread");
  flow.take(Side::Client, "last");
  flow.lose_client();
  EXPECT_EQ(flow.output(Side::Client), "");
  EXPECT_TRUE(flow.wants(Side::Client)) << "there may be more of it";
  flow.end(Side::Client);
  EXPECT_FALSE(flow.take_end(Side::Store));
  EXPECT_EQ(sent(flow, Side::Store), "last");
  EXPECT_TRUE(flow.take_end(Side::Store));
  EXPECT_FALSE(flow.is_over()) << "a reset would overtake it";
  EXPECT_TRUE(flow.wants(Side::Store));
  flow.take(Side::Store, "for nobody");
  EXPECT_EQ(flow.output(Side::Client), "");
  EXPECT_TRUE(flow.wants(Side::Store));
  flow.end(Side::Store);
  EXPECT_TRUE(flow.is_over());
}

// The relay's own token would open it.
TEST(RelayFlowTest, RefusesTheControlProtocolHoweverItComes) {
  for (std::size_t at = 0; at < control::kMagic.size(); ++at) {
    RelayFlow flow(nullptr);
    flow.on_store();
    const std::string bytes = opening();
    flow.take(Side::Client, bytes.substr(0, at));
    EXPECT_EQ(sent(flow, Side::Store), "");
    EXPECT_EQ(flow.fault(), Fault::None);
    flow.take(Side::Client, bytes.substr(at));
    EXPECT_EQ(flow.fault(), Fault::NoTcpStore);
    EXPECT_EQ(sent(flow, Side::Store), "");
    EXPECT_FALSE(flow.wants(Side::Client));
  }
}

TEST(RelayFlowTest, WhatOnlyBeginsLikeTheControlProtocolIsPassedOn) {
  RelayFlow flow(nullptr);
  flow.on_store();
  const std::string bytes(control::kMagic.substr(0, 3));
  flow.take(Side::Client, bytes);
  EXPECT_EQ(sent(flow, Side::Store), "");
  flow.take(Side::Client, "?");
  EXPECT_EQ(sent(flow, Side::Store), bytes + "?");
  // Later it is a value like others.
  flow.take(Side::Client, opening());
  EXPECT_EQ(sent(flow, Side::Store), opening());
}

class SecureRelayFlowTest : public testing::Test {
 protected:
  // Lets both ends say what they have to.
  void exchange() {
    for (std::string bytes = sent(flow_, Side::Store); !bytes.empty();
         bytes = sent(flow_, Side::Store)) {
      wire_ += bytes;
      store_.receive(bytes, heard_);
      answer();
    }
  }
  void answer() {
    flow_.take(Side::Store, store_.output());
    store_.output().clear();
  }

  RelayFlow flow_{test::tls_of(test::kToken)};
  Engine store_{test::tls_of(test::kToken), Engine::Role::Server};
  std::string heard_;  // by the store
  std::string wire_;   // on the way there
};

TEST_F(SecureRelayFlowTest, EncryptsWhatTheClientSays) {
  flow_.take(Side::Client, "the-client-says");
  EXPECT_EQ(sent(flow_, Side::Store), "");
  flow_.on_store();
  exchange();
  EXPECT_EQ(heard_, "the-client-says");
  EXPECT_THAT(wire_, Not(HasSubstr("the-client-says")));
  store_.send("the-store-says");
  answer();
  EXPECT_EQ(sent(flow_, Side::Client), "the-store-says");
  flow_.end(Side::Client);
  EXPECT_TRUE(flow_.take_end(Side::Store));
}

TEST_F(SecureRelayFlowTest, TheClientsEndWaitsForTheHandshake) {
  flow_.take(Side::Client, "only");
  flow_.end(Side::Client);
  flow_.on_store();
  EXPECT_NE(sent(flow_, Side::Store), "");
  EXPECT_FALSE(flow_.take_end(Side::Store));
}

TEST_F(SecureRelayFlowTest, AStoreWithAnotherTokenGetsNothing) {
  Engine other(test::tls_of(test::kOtherToken), Engine::Role::Server);
  flow_.on_store();
  flow_.take(Side::Client, "question");
  std::string heard;
  other.receive(sent(flow_, Side::Store), heard);
  flow_.take(Side::Store, other.output());
  EXPECT_EQ(flow_.fault(), Fault::Token);
  EXPECT_EQ(flow_.token_failure(), Engine::Failure::OtherToken);
  EXPECT_FALSE(flow_.lost_store());
}

TEST_F(SecureRelayFlowTest, AConnectionThatEndsInTheHandshakeIsNoLoss) {
  flow_.on_store();
  flow_.take(Side::Client, "question");
  EXPECT_NE(sent(flow_, Side::Store), "");
  EXPECT_TRUE(flow_.lost_store());
  EXPECT_EQ(sent(flow_, Side::Store), "");
  flow_.on_store();
  exchange();
  EXPECT_EQ(heard_, "question");
  EXPECT_FALSE(flow_.lost_store()) << "the store has heard the question";
}

TEST_F(SecureRelayFlowTest, WithoutMemoryForTlsNothingIsSaidPlainly) {
  if (!test::kHasScarceMemory) GTEST_SKIP() << "memory cannot be made scarce";
  flow_.take(Side::Client, "question");
  test::too_large = sizeof(Engine);
  EXPECT_THROW(flow_.on_store(), std::bad_alloc);
  test::too_large = 0;
  EXPECT_EQ(sent(flow_, Side::Store), "");
  EXPECT_FALSE(flow_.is_open());
  EXPECT_FALSE(flow_.wants(Side::Store));
  flow_.take(Side::Store, "answer");
  EXPECT_EQ(flow_.output(Side::Client), "");
  flow_.on_store();
  exchange();
  EXPECT_EQ(heard_, "question");
}

TEST(RelayFlowOfPlainBytesTest, ALostStoreIsLost) {
  RelayFlow flow(nullptr);
  flow.on_store();
  EXPECT_FALSE(flow.lost_store());
}

}  // namespace
}  // namespace drun::store
