#include "base/closest_word.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun {
namespace {

struct WordCase {
  const char* written;
  const char* known;
  bool meant;
};

TEST(ClosestWordTest, AFewLettersMayDiffer) {
  for (const WordCase& each :
       {WordCase{"nnode", "nnodes", true}, WordCase{"nnoodes", "nnodes", true},
        WordCase{"nmodes", "nnodes", true}, WordCase{"nnodse", "nnodes", true},
        WordCase{"model", "nnodes", false}, WordCase{"", "ab", false},
        // Neighbours that are swapped count once, and only if both are.
        WordCase{"ba", "ab", true}, WordCase{"bc", "ab", false}, WordCase{"ca", "ab", false}}) {
    const std::string expected = each.meant ? each.known : "";
    EXPECT_EQ(mistyped_word(each.written, {each.known}), expected) << each.written;
    EXPECT_EQ(closest_word(each.written, {each.known}), expected) << each.written;
  }
}

TEST(ClosestWordTest, TheNearestWordIsMeant) {
  EXPECT_EQ(mistyped_word("nodes", {"node-rank", "nnodes", "note"}), "nnodes");
}

TEST(ClosestWordTest, ALongBeginningIsEnoughForAFlag) {
  EXPECT_EQ(closest_word("master", {"local-addr", "master-addr"}), "master-addr");
  EXPECT_EQ(closest_word("mas", {"master-addr"}), "");
  EXPECT_EQ(mistyped_word("master", {"master-addr"}), "");
}

}  // namespace
}  // namespace drun
