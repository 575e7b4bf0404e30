#include "launcher/process/descendants.hpp"

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace drun::process {
namespace {

struct Search {
  std::vector<pid_t> found;
  int questions = 0;
};

Search search(pid_t self, const std::set<pid_t>& family) {
  Search result;
  result.found = search_children(self, [&](pid_t pid) {
    ++result.questions;
    return family.contains(pid);
  });
  return result;
}

// A question is a system call, and a sweep that asks for all four million numbers takes seconds:
// what must be killed within five seconds would live on.
TEST(SearchChildrenTest, AsksLittleWhereverTheNumbersAre) {
  constexpr int kFew = 70'000;
  const struct {
    pid_t self;
    std::set<pid_t> family;
  } cases[] = {
      {1, {2}},
      {1'000, {1'001, 1'500}},
      {32'700, {300, 32'000}},    // begun again behind 32767
      {4'194'300, {4'194'303}},   // the last number there is
      {4'194'300, {301, 5'000}},  // begun again behind it
      {2'000'000, {2'000'001}},
      {2'000'000, {32'767}},
  };
  for (const auto& [self, family] : cases) {
    SCOPED_TRACE(self);
    const auto result = search(self, family);
    EXPECT_EQ(std::set<pid_t>(result.found.begin(), result.found.end()), family);
    EXPECT_LT(result.questions, kFew);
  }
}

TEST(SearchChildrenTest, FindsAnyNumberInTheEnd) {
  for (const pid_t child : {40'000, 1'999'999, 4'194'303})
    EXPECT_EQ(search(2'000'000, {child}).found, std::vector<pid_t>{child});
}

TEST(SearchChildrenTest, NoNumberIsAskedForTwice) {
  for (const pid_t self : {1, 40'000, 4'194'303}) {
    std::vector<bool> asked(4'194'305);
    int questions = 0;
    (void)search_children(self, [&](pid_t pid) {
      ++questions;
      if (asked.at(static_cast<std::size_t>(pid))) ADD_FAILURE() << pid;
      asked[static_cast<std::size_t>(pid)] = true;
      return false;
    });
    EXPECT_FALSE(asked[static_cast<std::size_t>(self)]);
    EXPECT_EQ(questions, 4'194'302);  // from 1 to the highest, without its own
  }
}

}  // namespace
}  // namespace drun::process
