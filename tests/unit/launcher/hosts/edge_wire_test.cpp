// What a starter and its ends say to one another, in whatever pieces it comes.
#include "launcher/hosts/edge_wire.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

std::vector<Frame> read_in_pieces(const std::string& bytes, std::size_t piece, bool marked) {
  FrameReader reader(marked);
  std::vector<Frame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.take(std::string_view(bytes).substr(at, piece));
    while (auto frame = reader.next())
      frames.push_back(*frame);
  }
  EXPECT_FALSE(reader.broken());
  return frames;
}

TEST(EdgeWireTest, FramesComeOutAsTheyWentInWhateverThePieces) {
  const std::vector<Frame> frames{{FrameType::Hello, 0, std::string("a\0b", 3)},
                                  {FrameType::Alive},
                                  {FrameType::Output, 70'000, std::string(70'000, 'x')},
                                  {FrameType::Ended, 0xffffffff, "7"},
                                  {FrameType::ErrorTaken, 1, "65536"},
                                  {FrameType::Words, 1, "drun: so it is\n"}};
  std::string bytes;
  for (const Frame& frame : frames)
    bytes += encode(frame);
  const std::string noise = "Welcome!\n\0dru";
  for (const std::size_t piece : {1U, 2U, 7U, 4096U, 100'000U}) {
    EXPECT_EQ(read_in_pieces(bytes, piece, false), frames) << piece;
    EXPECT_EQ(read_in_pieces(noise + std::string(kEdgeMark) + bytes, piece, true), frames) << piece;
  }
}

TEST(EdgeWireTest, WhatIsNoneOfOursIsNotReadForEver) {
  FrameReader noise(true);
  noise.take(std::string(kMostNoise + 1, 'x'));
  EXPECT_TRUE(noise.broken());
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff\0\0\0\0\x04", 9),
                                   std::string(9, '\0'), std::string(8, '\0') + "\x63"}) {
    FrameReader reader(false);
    reader.take(bytes);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.broken());
  }
}

TEST(EdgeWireTest, WhatComesBeforeTheMarkCanBeShown) {
  FrameReader reader(true);
  reader.take("This account is ");
  reader.take("closed.\n");
  EXPECT_EQ(reader.noise(), "This account is closed.\n");
  reader.take(kEdgeMark);
  EXPECT_EQ(reader.noise(), "");
}

TEST(EdgeWireTest, AHostMayAskForDrunBeforeItAnswers) {
  const std::string bytes = "Hello!\n" + std::string(kCopyMark) + "Linux x86_64\n" +
                            std::string(kEdgeMark) + encode({FrameType::Alive});
  for (const std::size_t size : {1U, 7U, 1000U}) {
    FrameReader reader(true);
    std::vector<std::string> machines;
    int frames = 0;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      reader.take(std::string_view(bytes).substr(at, size));
      if (const auto machine = reader.copy_wanted()) machines.push_back(*machine);
      while (reader.next())
        ++frames;
    }
    // In one piece with the mark it comes too late to be answered.
    EXPECT_EQ(machines,
              size < 1000 ? std::vector<std::string>{"Linux x86_64"} : std::vector<std::string>{});
    EXPECT_EQ(frames, 1);
  }
}

TEST(EdgeWireTest, WhatIsNoExitCodeIsAFailure) {
  EXPECT_EQ(unpack_exit_code("0"), 0);
  EXPECT_EQ(unpack_exit_code("255"), 255);
  for (const char* none : {"", "512", "256", "-1", "x", "99999999999"})
    EXPECT_EQ(unpack_exit_code(none), 125) << none;
}

TEST(EdgeWireTest, OrdersAndGreetingsComeOutAsTheyWentIn) {
  const Hello hello{"1.2.3", "10.0.0.7", "", "node7"};
  EXPECT_EQ(*unpack_hello(pack(hello)), hello);
  const Hello without{"1.2.3", "", "7", "node7", "libssl.so.3 is not there"};
  EXPECT_EQ(*unpack_hello(pack(without)), without);
  const std::string older = std::string("1.2.3") + '\0' + '\0' + "7" + '\0' + "node7" + '\0';
  EXPECT_EQ(unpack_hello(older)->version, "1.2.3") << "it is told apart by that";
  const Order order{"/a folder", "40000", {"drun", "", "it's \"x\"\n"}, {"A=", "B=c=d"}};
  EXPECT_EQ(*unpack_order(pack(order)), order);
  const Order bare{"/", "0", {"drun"}, {}};
  EXPECT_EQ(*unpack_order(pack(bare)), bare);
}

TEST(EdgeWireTest, BranchesComeOutAsTheyWentIn) {
  const Branch branch{{"ssh", "-p", "1"}, "/opt/drun", 32, true, {{7, "a"}, {8, "me@b"}}};
  EXPECT_EQ(*unpack_branch(pack(branch)), branch);
  const Branch leaf{{"ssh"}, "/opt/drun", 1, false, {}};
  EXPECT_EQ(*unpack_branch(pack(leaf)), leaf);
  const auto texts = [](const std::vector<std::string>& words) {
    std::string payload;
    for (const std::string& word : words)
      payload += word + std::string(1, '\0');
    return payload;
  };
  EXPECT_TRUE(unpack_branch(texts({"d", "1", "0", "1", "ssh", "7", "a"})));
  for (const std::string& payload :
       {texts({}), texts({"d", "0", "0", "1", "ssh"}), texts({"d", "1", "0", "0"}),
        texts({"d", "1", "0", "1", "ssh", "7"}), texts({"d", "1", "0", "1", "ssh", "x", "a"}),
        texts({"d", "1", "0"})})
    EXPECT_FALSE(unpack_branch(payload)) << payload;
}

TEST(EdgeWireTest, BranchesAreAsEvenAsPossibleAndKeepTheOrder) {
  const auto sizes = [](std::size_t hosts, std::size_t fan_out) {
    std::vector<Target> targets;
    for (std::size_t host = 0; host < hosts; ++host)
      targets.push_back({static_cast<std::uint32_t>(host), "n"});
    std::string text;
    std::uint32_t next = 0;
    for (const auto& branch : branches_of(targets, fan_out)) {
      text += std::to_string(branch.size()) + " ";
      for (const Target& target : branch)
        EXPECT_EQ(target.host, next++);
    }
    EXPECT_EQ(next, hosts);
    return text;
  };
  EXPECT_EQ(sizes(0, 32), "");
  EXPECT_EQ(sizes(3, 32), "1 1 1 ");
  EXPECT_EQ(sizes(5, 2), "3 2 ");
  EXPECT_EQ(sizes(7, 3), "3 2 2 ");
  EXPECT_EQ(sizes(4, 1), "4 ");
}

TEST(EdgeWireTest, WhatIsNoOrderIsRefused) {
  for (const std::string& payload :
       {std::string(), std::string("a"), std::string("a\0b\0", 4), std::string("a\0b\0x\0c\0", 8),
        std::string("a\0b\0"
                    "0\0",
                    6),
        std::string("a\0b\0"
                    "2\0c\0",
                    8),
        std::string("a\0b\0"
                    "1\0c",
                    7)})
    EXPECT_FALSE(unpack_order(payload)) << payload;
  EXPECT_FALSE(unpack_hello(std::string("1\0\0\0", 3)));
  EXPECT_FALSE(unpack_hello("1"));
}

}  // namespace
}  // namespace drun::launcher::hosts
