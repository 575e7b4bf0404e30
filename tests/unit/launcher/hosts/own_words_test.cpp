// drun's own words among what workers print, and which of them are news.
#include "launcher/hosts/own_words.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using Pieces = std::vector<WordsReader::Piece>;

// Pieces of the same kind that follow one another are one.
Pieces read_in_pieces(const WordMarks& marks, const std::string& bytes, std::size_t size) {
  WordsReader reader(marks);
  Pieces all;
  const auto add = [&all](const Pieces& pieces) {
    for (const auto& piece : pieces) {
      if (!piece.own && !all.empty() && !all.back().own) {
        all.back().bytes += piece.bytes;
      } else {
        all.push_back(piece);
      }
    }
  };
  for (std::size_t at = 0; at < bytes.size(); at += size)
    add(reader.take(std::string_view(bytes).substr(at, size)));
  add(reader.rest());
  return all;
}

TEST(OwnWordsTest, AreTakenOutOfWhatWorkersPrintInWhateverPieces) {
  const WordMarks marks = word_marks("secret");
  const std::string bytes = "one\n" + marked(marks, "drun: a\n") +
                            marked(marks, "drun: b\n  | c\n") + std::string("two\0\0drun", 9) +
                            marked(marks, "drun: d\n");
  const Pieces wanted{{false, "one\n"},
                      {true, "drun: a\n"},
                      {true, "drun: b\n  | c\n"},
                      {false, std::string("two\0\0drun", 9)},
                      {true, "drun: d\n"}};
  for (const std::size_t size : {1U, 2U, 5U, 11U, 1000U})
    EXPECT_EQ(read_in_pieces(marks, bytes, size), wanted) << size;
}

TEST(OwnWordsTest, NothingIsLostAndNothingWaitsForAMarkThatIsNone) {
  const WordMarks marks = word_marks("secret");
  WordsReader reader(marks);
  EXPECT_EQ(reader.take("no line end"), (Pieces{{false, "no line end"}}));
  EXPECT_EQ(reader.take(marks.begin + "cut off"), Pieces{});
  EXPECT_EQ(reader.rest(), (Pieces{{false, "cut off"}}));
  const std::string others = marked(word_marks("another"), "drun: x\n");
  EXPECT_EQ(read_in_pieces(marks, others, 3), (Pieces{{false, others}}));
  const std::string endless = marks.begin + std::string(2'000'000, 'x');
  EXPECT_EQ(read_in_pieces(marks, endless, 4096), (Pieces{{false, std::string(2'000'000, 'x')}}));
  EXPECT_EQ(read_in_pieces({}, "plain", 2), (Pieces{{false, "plain"}}));
}

TEST(OwnWordsTest, AreToldToTheAgentAloneByAVariable) {
  std::vector<std::string> environment{"A=1", "DRUN_OWN_WORDS=s3cret", "B=2"};
  EXPECT_EQ(take_word_marks(environment), word_marks("s3cret"));
  EXPECT_EQ(environment, (std::vector<std::string>{"A=1", "B=2"}));
  EXPECT_EQ(take_word_marks(environment), WordMarks());
  EXPECT_EQ(marked({}, "text"), "text");
}

TEST(OwnWordsTest, AreNewsIfNoHostHasSaidThemSoOften) {
  SaidWords said;
  EXPECT_TRUE(said.is_news(0, "restart"));
  EXPECT_FALSE(said.is_news(1, "restart"));
  EXPECT_TRUE(said.is_news(1, "of host 1"));
  EXPECT_TRUE(said.is_news(1, "restart"));
  EXPECT_FALSE(said.is_news(0, "restart"));
  EXPECT_FALSE(said.is_news(2, "restart"));
}

TEST(OwnWordsTest, WhatWasSaidLongAgoIsForgotten) {
  SaidWords said(2);
  EXPECT_TRUE(said.is_news(0, "a"));
  EXPECT_TRUE(said.is_news(0, "b"));
  EXPECT_TRUE(said.is_news(0, "c"));
  EXPECT_FALSE(said.is_news(1, "c"));
  EXPECT_TRUE(said.is_news(1, "a"));
}

}  // namespace
}  // namespace drun::launcher::hosts
