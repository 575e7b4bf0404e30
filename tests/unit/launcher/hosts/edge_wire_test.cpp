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
  const std::vector<Frame> frames{{FrameType::Hello, std::string("a\0b", 3)},
                                  {FrameType::Alive},
                                  {FrameType::Output, std::string(70'000, 'x')},
                                  {FrameType::Ended, "7"}};
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
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff\x04", 5),
                                   std::string("\0\0\0\0\0", 5), std::string("\0\0\0\0\x63", 5)}) {
    FrameReader reader(false);
    reader.take(bytes);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.broken());
  }
}

TEST(EdgeWireTest, OrdersAndGreetingsComeOutAsTheyWentIn) {
  const Hello hello{"1.2.3", "10.0.0.7", "", "node7"};
  EXPECT_EQ(*unpack_hello(pack(hello)), hello);
  const Order order{"/a folder", "40000", {"drun", "", "it's \"x\"\n"}, {"A=", "B=c=d"}};
  EXPECT_EQ(*unpack_order(pack(order)), order);
  const Order bare{"/", "0", {"drun"}, {}};
  EXPECT_EQ(*unpack_order(pack(bare)), bare);
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
