#include "secure/tls_engine.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/random_bytes.hpp"
#include "base/split.hpp"
#include "secure/tls_context.hpp"
#include "secure/token.hpp"
#include "support/ending_tls_client.hpp"

namespace drun::secure {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum TlsEngine::State;
using Failure = TlsEngine::Failure;
using Role = TlsEngine::Role;

const std::string kOne = "0123456789abcdef0123456789abcdef";
const std::string kTwo = "0123456789abcdef0123456789abcdeF";

std::shared_ptr<const TlsContext> context_of(const std::string& token) {
  auto context = TlsContext::of(Token::from(token).value());
  EXPECT_TRUE(context) << context.error().what();
  return *context;
}

struct End {
  End(const std::string& token, Role role) : engine(context_of(token), role) {}

  TlsEngine engine;
  std::string heard{};
};

struct Pair {
  explicit Pair(const std::string& server_token = kOne, const std::string& client_token = kOne)
      : client(client_token, Role::Client), server(server_token, Role::Server) {}

  // All that is on its way, in pieces of this size, until nothing is. Noted in `wire`.
  void carry(std::size_t piece = 1'000'000) {
    while (!client.engine.output().empty() || !server.engine.output().empty()) {
      pass(client, server, piece);
      pass(server, client, piece);
    }
  }
  void pass(End& from, End& to, std::size_t piece) {
    const std::string bytes = std::exchange(from.engine.output(), {});
    wire += bytes;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      to.engine.receive(std::string_view(bytes).substr(at, piece), to.heard);
  }

  End client;
  End server;
  std::string wire{};
};

std::string token_of_job(const std::string& store, std::string_view job) {
  const auto token = context_of(store)->job_token(job);
  EXPECT_TRUE(token) << token.error().what();
  return token->handed_over("").substr(1);
}

TEST(TlsEngineTest, AStoreKnowsTheJobOfATokenThatFollowsFromItsOwn) {
  const std::string token = token_of_job(kOne, "train%2F1");
  EXPECT_EQ(token.substr(0, 19), "drun-job:train%2F1:");
  Pair pair(kOne, token);
  pair.carry(7);
  ASSERT_TRUE(pair.client.engine.is_open());
  ASSERT_TRUE(pair.server.engine.is_open());
  EXPECT_EQ(pair.server.engine.job(), "train%2F1");
  pair.client.engine.send("asked");
  pair.server.engine.send("told");
  pair.carry();
  EXPECT_EQ(pair.server.heard, "asked");
  EXPECT_EQ(pair.client.heard, "told");
  EXPECT_THAT(pair.wire, Not(HasSubstr(token.substr(19))));

  Pair own(kOne, kOne);
  own.carry();
  ASSERT_TRUE(own.server.engine.is_open());
  EXPECT_EQ(own.server.engine.job(), "") << "the store's own token reaches all";
}

// What a job's agents have between them, and nobody else.
TEST(TlsEngineTest, AJobsTokenIsAllThereIsToTheAgentsOfTheJob) {
  const std::string token = token_of_job(kOne, "a");
  Pair agents(token, token);
  agents.carry();
  ASSERT_TRUE(agents.server.engine.is_open());
  EXPECT_EQ(agents.server.engine.job(), "");
  EXPECT_FALSE(context_of(token)->job_token("b")) << "nothing follows from it";
  for (const std::string& other : {kOne, token_of_job(kOne, "b"), token_of_job(kTwo, "a")}) {
    Pair pair(token, other);
    pair.carry();
    EXPECT_EQ(pair.server.engine.failure(), Failure::OtherToken);
  }
}

TEST(TlsEngineTest, AJobsTokenMustFollowFromTheStores) {
  const std::string token = token_of_job(kOne, "a");
  std::string renamed = token;
  renamed[9] = 'b';
  std::string changed = token;
  changed.back() = changed.back() == '0' ? '1' : '0';
  for (const std::string& wrong : {renamed, changed, token_of_job(kTwo, "a")}) {
    Pair pair(kOne, wrong);
    pair.carry();
    EXPECT_FALSE(pair.client.engine.is_open());
    EXPECT_EQ(pair.server.engine.failure(), Failure::OtherToken);
    EXPECT_EQ(pair.client.engine.failure(), Failure::OtherToken);
  }
}

TEST(TlsEngineTest, WhoHasTheSameTokenIsHeardAndNobodyElseReadsIt) {
  Pair pair;
  pair.carry();
  ASSERT_TRUE(pair.client.engine.is_open());
  ASSERT_TRUE(pair.server.engine.is_open());
  pair.client.engine.send("the question of an agent");
  pair.server.engine.send("the answer of a store");
  pair.carry();
  EXPECT_EQ(pair.server.heard, "the question of an agent");
  EXPECT_EQ(pair.client.heard, "the answer of a store");
  EXPECT_THAT(pair.wire, Not(HasSubstr("question")));
  EXPECT_THAT(pair.wire, Not(HasSubstr("answer")));
  EXPECT_THAT(pair.wire, Not(HasSubstr(kOne)));
  EXPECT_THAT(pair.wire, Not(HasSubstr(context_of(kOne)->secret())));
}

TEST(TlsEngineTest, TheServerGivesNothingBeforeTheClientHasProvedWhatItKnows) {
  Pair pair;
  pair.pass(pair.client, pair.server, 1'000);
  EXPECT_EQ(pair.server.engine.state(), Handshake) << "a hello alone may be another's, repeated";
  pair.pass(pair.server, pair.client, 1'000);
  EXPECT_TRUE(pair.client.engine.is_open());
  EXPECT_EQ(pair.server.engine.state(), Handshake);
  pair.pass(pair.client, pair.server, 1'000);
  EXPECT_TRUE(pair.server.engine.is_open());
}

TEST(TlsEngineTest, AnotherTokenIsToldApartOnBothSides) {
  Pair pair(kOne, kTwo);
  pair.carry();
  EXPECT_EQ(pair.server.engine.failure(), Failure::OtherToken);
  EXPECT_EQ(pair.client.engine.failure(), Failure::OtherToken);
  EXPECT_THAT(pair.client.heard + pair.server.heard, IsEmpty());
}

TEST(TlsEngineTest, EveryPartOfAByteAtATimeIsEnough) {
  Pair pair;
  pair.carry(1);
  std::string much(300'000, 'x');
  for (std::size_t i = 0; i < much.size(); ++i)
    much[i] = static_cast<char>(i * 7 + i / 255);
  pair.client.engine.send(much);
  pair.server.engine.send(much + "y");
  pair.carry(1);
  EXPECT_EQ(pair.server.heard, much);
  EXPECT_EQ(pair.client.heard, much + "y");
}

TEST(TlsEngineTest, NoMorePlaintextComesThanWasReceivedAndHeldBack) {
  Pair pair;
  pair.carry();
  pair.client.engine.send(std::string(100'000, 'x'));
  const std::string bytes = std::exchange(pair.client.engine.output(), {});
  constexpr std::size_t kCut = 16'000;  // just before the first record's end
  pair.server.engine.receive(std::string_view(bytes).substr(0, kCut), pair.server.heard);
  EXPECT_THAT(pair.server.heard, IsEmpty());
  pair.server.engine.receive(std::string_view(bytes).substr(kCut, 1'000), pair.server.heard);
  EXPECT_LE(pair.server.heard.size(), 1'000 + TlsEngine::kHeldBack);
}

TEST(TlsEngineTest, APeerThatSpeaksPlainlyIsToldApart) {
  End client(kOne, Role::Client);
  client.engine.receive("HTTP/1.1 400 Bad Request\r\n", client.heard);
  EXPECT_EQ(client.engine.failure(), Failure::NotTls);
  End server(kOne, Role::Server);
  server.engine.receive("GET / HTTP/1.1\r\nHost: here\r\n\r\n", server.heard);
  EXPECT_EQ(server.engine.failure(), Failure::Stranger);
  EXPECT_THAT(client.heard + server.heard, IsEmpty());
}

TEST(TlsEngineTest, AServerWithoutATokenCanSaySo) {
  End client(kOne, Role::Client);
  client.engine.receive(kNoTokenAnswer, client.heard);
  EXPECT_EQ(client.engine.failure(), Failure::NoToken);
}

TEST(TlsEngineTest, GarbageNeitherHurtsNorCollects) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    End server(kOne, Role::Server);
    std::string bytes = "\x16\x03\x01\x40";  // a record of 16 KiB is announced
    bytes += static_cast<char>(seed);
    for (std::size_t i = 0; i < 100'000; ++i)
      bytes += static_cast<char>((i + 1) * (seed + 3) * 2'654'435'761U >> 11U);
    server.engine.receive(bytes, server.heard);
    EXPECT_EQ(server.engine.state(), Failed) << seed;
    EXPECT_THAT(server.heard, IsEmpty());
  }
}

TEST(TlsEngineTest, AHandshakeHasSoManyBytesAndNoMore) {
  End server(kOne, Role::Server);
  // The beginning of a hello of 100,000 bytes, in records of 1,000.
  std::string record("\x16\x03\x01\x03\xe8\x01\x01\x86\xa0\x03\x03", 11);
  record.resize(1'005, 'x');
  std::size_t taken = 0;
  for (int i = 0; i < 50 && server.engine.state() == Handshake; ++i) {
    server.engine.receive(record, server.heard);
    taken += record.size();
    record = std::string("\x16\x03\x01\x03\xe8", 5) + std::string(1'000, 'x');
  }
  EXPECT_EQ(server.engine.state(), Failed);
  EXPECT_LE(taken, TlsEngine::kHandshakeBytes + 1'005);
}

TEST(TlsEngineTest, EveryChangedByteOnTheWayIsNoticed) {
  Pair sample;
  const std::size_t hello = sample.client.engine.output().size();
  for (std::size_t at = 0; at < hello; at += 7) {
    Pair pair;
    pair.client.engine.output()[at] ^= 1;
    pair.carry();
    const bool both_open = pair.client.engine.is_open() && pair.server.engine.is_open();
    EXPECT_FALSE(both_open) << "byte " << at << " of the hello";
  }
  Pair pair;
  pair.carry();
  pair.client.engine.send("words");
  pair.client.engine.output()[8] ^= 1;
  pair.carry();
  EXPECT_EQ(pair.server.engine.failure(), Failure::Broken);
  EXPECT_THAT(pair.server.heard, IsEmpty());
}

TEST(TlsEngineTest, ARecordedConnectionCannotBePlayedAgain) {
  Pair pair;
  const std::string hello = pair.client.engine.output();
  pair.carry();
  End other(kOne, Role::Server);
  other.engine.receive(hello, other.heard);
  EXPECT_EQ(other.engine.state(), Handshake) << "it is a true hello, but the rest does not fit";
  End client(kOne, Role::Client);
  pair.client.engine.send("words");
  other.engine.receive(pair.client.engine.output(), other.heard);
  EXPECT_EQ(other.engine.state(), Failed);
  EXPECT_THAT(other.heard, IsEmpty());
}

// Of all versions of drun, as docs/protocol.md has it.
TEST(TlsContextTest, TheKeyOfATokenStaysTheSame) {
  const auto context = context_of(kOne);
  std::string key;
  for (const char byte : context->secret()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    key += kDigits[static_cast<unsigned char>(byte) >> 4U];
    key += kDigits[static_cast<unsigned char>(byte) & 0xFU];
  }
  EXPECT_EQ(key, "f816506c4c451b6497b749df57ca06d06527f749c38824c40cb51291f9f28bc1");
}

TEST(TlsContextTest, AKeyIsEnoughAndNotTheToken) {
  const auto context = context_of(kOne);
  EXPECT_THAT(context->secret(), SizeIs(32));
  EXPECT_THAT(context->secret(), Not(HasSubstr(kOne.substr(0, 8))));
  EXPECT_EQ(context->secret(), context_of(kOne)->secret());
  EXPECT_NE(context->secret(), context_of(kTwo)->secret());
  const auto copy = TlsContext::of_secret(context->secret());
  ASSERT_TRUE(copy);
  TlsEngine client(*copy, Role::Client);
  TlsEngine server(context, Role::Server);
  std::string plain;
  server.receive(client.output(), plain);
  client.receive(server.output(), plain);
  EXPECT_TRUE(client.is_open());
  EXPECT_FALSE(TlsContext::of_secret("short"));
}

TEST(TlsEngineTest, WhoHasEndedIsHeardNoMore) {
  const auto context = context_of(kOne);
  test::EndingTlsClient client(context->secret());
  TlsEngine server(context, Role::Server);
  std::string heard;
  server.receive(client.say(), heard);
  client.hear(server.output());
  server.receive(client.say_last("the last words"), heard);
  EXPECT_EQ(heard, "the last words");
  EXPECT_EQ(server.state(), Ended);
  EXPECT_FALSE(server.is_open());
  server.receive(std::string(100'000, 'x'), heard);
  EXPECT_EQ(server.state(), Ended);
  EXPECT_EQ(server.failure(), Failure::None);
}

// How many bytes of memory are in use, of which the allocator may keep some for the next one; 0
// under a sanitizer, which has an allocator of its own.
std::int64_t used_memory() {
  return static_cast<std::int64_t>(::mallinfo2().uordblks);
}

// A store serves for weeks.
TEST(TlsEngineTest, NothingIsLeftOfThoseThatAreGone) {
  constexpr int kMany = 40;
  std::int64_t before = 0;
  for (int i = -4; i < kMany; ++i) {
    if (i == 0) before = used_memory();
    Pair pair;
    pair.carry();
    ASSERT_TRUE(pair.server.engine.is_open());
  }
  EXPECT_LT(used_memory() - before, kMany * 8 * 1024);
}

// A store may have thousands of connections that say little.
TEST(TlsEngineTest, OneThatIsIdleHoldsNoBuffers) {
  constexpr int kMany = 20;
  const auto context = context_of(kOne);
  std::string plain;
  std::vector<std::unique_ptr<TlsEngine>> engines;
  std::int64_t before = 0;
  for (int i = 0; i <= kMany; ++i) {
    if (i == 1) before = used_memory();
    engines.push_back(std::make_unique<TlsEngine>(context, Role::Client));
    engines.push_back(std::make_unique<TlsEngine>(context, Role::Server));
    TlsEngine& client = *engines[engines.size() - 2];
    TlsEngine& server = *engines.back();
    for (int turn = 0; turn < 2; ++turn) {
      server.receive(std::exchange(client.output(), {}), plain);
      client.receive(std::exchange(server.output(), {}), plain);
    }
    ASSERT_TRUE(client.is_open() && server.is_open());
  }
  EXPECT_LT(used_memory() - before, kMany * 48 * 1024);
}

// How often this process's memory has these bytes, each of which is given inverted, so that they
// are not found here. Allocates nothing: that would write over what it looks for.
int times_in_memory(std::string_view inverted) {
  static std::array<char, 1 << 18> maps;
  const FileDescriptor file(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(got))
    got = std::max(::read(file.get(), maps.data() + size, maps.size() - size), ssize_t{0});
  std::string_view text(maps.data(), size);
  int times = 0;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (line.find(" rw-p ") == std::string_view::npos) continue;
    char* after = nullptr;
    const std::uintptr_t begin = std::strtoull(line.data(), &after, 16);
    const std::uintptr_t end = std::strtoull(after + 1, nullptr, 16);
    const auto* bytes = reinterpret_cast<const volatile char*>(begin);
    for (std::size_t at = 0; at + inverted.size() <= end - begin; ++at) {
      std::size_t same = 0;
      while (same < inverted.size() && static_cast<char>(~bytes[at + same]) == inverted[same])
        ++same;
      if (same == inverted.size()) ++times;
    }
  }
  return times;
}

// As a core file would show it.
TEST(TlsContextTest, ItsKeyIsInOnePlaceAndGoneWithIt) {
#if defined(DRUN_ASAN) || defined(DRUN_TSAN)
  GTEST_SKIP() << "a sanitizer has memory without end";
#endif
  const std::string token = random_name(32);
  std::string inverted;
  inverted.reserve(TlsContext::kKeyBytes);
  auto context = context_of(token);
  // The allocator writes over the beginning of what it gets back.
  for (const char byte : std::string_view(context->secret()).substr(TlsContext::kKeyBytes / 2))
    inverted += static_cast<char>(~byte);
  EXPECT_EQ(times_in_memory(inverted), 1);
  context.reset();
  EXPECT_EQ(times_in_memory(inverted), 0);
}

TEST(TlsContextTest, ThePageHasAKeyOfItsOwn) {
  const auto one = context_of(kOne);
  const std::string key = one->page_key();
  EXPECT_THAT(key, SizeIs(64));
  EXPECT_EQ(TlsContext::of_secret(one->secret()).value()->page_key(), key)
      << "also without the token";
  EXPECT_NE(context_of(kTwo)->page_key(), key);
  EXPECT_TRUE(Token::from(key)) << "a header takes it";
  EXPECT_TRUE(can_speak_tls());
}

}  // namespace
}  // namespace drun::secure
