#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/process/channel.hpp"
#include "launcher/process/wire.hpp"
#include "support/guardian_driver.hpp"

namespace drun::process {
namespace {

std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::string_view payload_of(const std::string& message) {
  return std::string_view(message).substr(sizeof(wire::Header));
}

TEST(WireTest, EventsReadBackAsTheyWere) {
  Exited exited;
  exited.id = 7;
  exited.pid = 1234;
  exited.status = {3, 0, false};
  exited.out_of_memory = true;
  exited.killed_by_stop = true;
  const auto got = wire::decode_event(wire::Type::Exited, payload_of(wire::encode(exited)));
  ASSERT_TRUE(got && std::holds_alternative<Exited>(*got));
  EXPECT_EQ(std::get<Exited>(*got).id, 7U);
  EXPECT_EQ(std::get<Exited>(*got).pid, 1234);
  EXPECT_EQ(std::get<Exited>(*got).status, (ExitStatus{3, 0, false}));
  EXPECT_TRUE(std::get<Exited>(*got).out_of_memory);
  EXPECT_TRUE(std::get<Exited>(*got).killed_by_stop);

  const SpawnFailed failed{9, ENOENT, "exec /x y/z"};
  const auto failure =
      wire::decode_event(wire::Type::SpawnFailed, payload_of(wire::encode(failed)));
  ASSERT_TRUE(failure && std::holds_alternative<SpawnFailed>(*failure));
  EXPECT_EQ(std::get<SpawnFailed>(*failure).error, ENOENT);
  EXPECT_EQ(std::get<SpawnFailed>(*failure).attempted, "exec /x y/z");
}

TEST(WireTest, AFarewellReadsBackAsItWasOrNotAtAll) {
  Farewell farewell{std::string("addr\0ess", 8), std::string("\0bytes", 6), {}};
  const auto alone = wire::encode(farewell).size() - sizeof(wire::Header);
  farewell.others = {{"second", "other bytes"}, {std::string("th\0rd", 5), ""}};
  const auto two = alone + 8 + 6 + 11;
  const std::string message = wire::encode(farewell);
  const auto whole = payload_of(message);
  const Farewell got = wire::decode_farewell(whole);
  EXPECT_EQ(got.address, farewell.address);
  EXPECT_EQ(got.bytes, farewell.bytes);
  ASSERT_EQ(got.others.size(), 2U);
  EXPECT_EQ(got.others[0].address, "second");
  EXPECT_EQ(got.others[0].bytes, "other bytes");
  EXPECT_EQ(got.others[1].address, farewell.others[1].address);
  EXPECT_EQ(got.others[1].bytes, "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == alone || size == two) continue;  // whole ones
    EXPECT_EQ(wire::decode_farewell(whole.substr(0, size)).address, "") << size;
  }
}

TEST(WireTest, APayloadThatIsCutShortIsNoEvent) {
  const SpawnFailed failed{9, ENOENT, "exec /x"};
  const std::string message = wire::encode(failed);
  const auto whole = payload_of(message);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(wire::decode_event(wire::Type::SpawnFailed, whole.substr(0, size))) << size;
  EXPECT_FALSE(wire::decode_event(wire::Type::Spawn, whole));
}

TEST(WireTest, SpawnRequestKeepsEveryString) {
  SpawnRequest request;
  request.id = 5;
  request.argv = {"prog", "", "a b", std::string(100'000, 'x')};
  request.environment = {"A=1", "EMPTY="};
  request.cpu_affinity = {0, 3, 200};
  request.memory_nodes = {1};
  const std::string message = wire::encode(request);
  wire::Reader reader(payload_of(message));
  const auto body = reader.number<wire::SpawnBody>();
  EXPECT_EQ(body.id, 5U);
  EXPECT_EQ(body.arguments, 4U);
  EXPECT_EQ(body.variables, 2U);
  EXPECT_EQ(body.which, 0U);
  for (const auto& argument : request.argv)
    EXPECT_EQ(reader.text(), argument);
  for (const auto& variable : request.environment)
    EXPECT_EQ(reader.text(), variable);
  EXPECT_EQ(body.cpus, 3U);
  EXPECT_EQ(body.memory_nodes, 1U);
  for (const int number : {0, 3, 200, 1})
    EXPECT_EQ(reader.number<std::int32_t>(), number);
  EXPECT_TRUE(reader.ok());
  EXPECT_STREQ(reader.text(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(ChannelTest, AnySplitOfTheBytesGivesTheSameMessages) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    auto [near, far] = socket_pair();
    Channel channel(std::move(near));
    std::vector<std::string> sent;
    std::string bytes;
    for (int i = 0; i < 20; ++i) {
      sent.emplace_back(random() % 3000, static_cast<char>('a' + i));
      bytes += wire::Writer(wire::Type::SpawnFailed, 0).text(sent.back()).finish();
    }
    std::vector<std::string> received;
    while (!bytes.empty()) {
      const std::size_t n = std::min<std::size_t>(bytes.size(), 1 + random() % 700);
      ASSERT_EQ(::write(far.get(), bytes.data(), n), static_cast<ssize_t>(n));
      bytes.erase(0, n);
      ASSERT_EQ(channel.fill(), Channel::Fill::More);
      while (const auto frame = channel.next())
        received.emplace_back(wire::Reader(frame->payload).text());
    }
    EXPECT_EQ(received, sent);
    EXPECT_EQ(channel.fill(), Channel::Fill::Empty);
    far.reset();
    EXPECT_EQ(channel.fill(), Channel::Fill::Closed);
  }
}

TEST(ChannelTest, NeverBlocksAndDeliversMegabytesWithTheirDescriptors) {
  auto [near, far] = socket_pair();
  Channel sender(std::move(near));
  Channel receiver(std::move(far));
  constexpr int kMessages = 40;
  const std::string big(200'000, 'x');
  std::vector<FileDescriptor> kept;
  for (int i = 0; i < kMessages; ++i) {
    test::Pipe pipe;
    std::vector<FileDescriptor> descriptors;
    if (i % 2 == 0) descriptors.push_back(std::move(pipe.write));
    const auto count = static_cast<std::uint8_t>(descriptors.size());
    sender.send(wire::Writer(wire::Type::Spawn, count).number(i).text(big).finish(),
                std::move(descriptors));
    kept.push_back(std::move(pipe.read));
    ASSERT_TRUE(sender.flush());  // nobody reads: this must return
  }
  EXPECT_TRUE(sender.wants_write());
  int received = 0;
  while (received < kMessages) {
    ASSERT_TRUE(sender.flush());
    if (receiver.fill() != Channel::Fill::More) continue;
    while (auto frame = receiver.next()) {
      EXPECT_EQ(wire::Reader(frame->payload).number<int>(), received);
      EXPECT_FALSE(frame->descriptors_missing);
      ASSERT_EQ(frame->descriptors.size(), received % 2 == 0 ? 1U : 0U);
      if (received % 2 == 0) {
        // It is the right one: its own pipe hears of it.
        ASSERT_EQ(::write(frame->descriptors[0].get(), "!", 1), 1);
        char c = 0;
        EXPECT_EQ(::read(kept[static_cast<std::size_t>(received)].get(), &c, 1), 1);
      }
      ++received;
    }
  }
  EXPECT_FALSE(sender.wants_write());
}

TEST(ChannelTest, WritingToAnEndThatIsGoneIsNotFatal) {
  auto [near, far] = socket_pair();
  Channel channel(std::move(near));
  far.reset();
  channel.send(wire::Writer(wire::Type::Stop, 0).finish());
  EXPECT_FALSE(channel.flush());
}

}  // namespace
}  // namespace drun::process
