#include "store/server/turn_queue.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

struct Numbered : TurnQueue::Waiter {
  explicit Numbered(int value) : number(value) {}
  int number;
};

std::vector<int> drained(TurnQueue& queue) {
  std::vector<int> numbers;
  while (!queue.empty())
    numbers.push_back(static_cast<Numbered&>(queue.pop()).number);
  return numbers;
}

TEST(TurnQueueTest, WhoCameFirstIsServedFirst) {
  TurnQueue queue;
  EXPECT_TRUE(queue.empty());
  Numbered one(1);
  Numbered two(2);
  Numbered three(3);
  for (Numbered* each : {&two, &one, &three})
    queue.push(*each);
  EXPECT_EQ(drained(queue), (std::vector{2, 1, 3}));
  queue.push(three);
  queue.push(two);
  EXPECT_EQ(drained(queue), (std::vector{3, 2})) << "whoever was served may wait again";
}

TEST(TurnQueueTest, WhoLeavesOrGoesIsNotServed) {
  TurnQueue queue;
  Numbered first(1);
  Numbered middle(2);
  Numbered last(4);
  queue.push(first);
  queue.push(middle);
  {
    Numbered gone(3);
    queue.push(gone);
    queue.push(last);
  }
  middle.leave_queue();
  middle.leave_queue();
  EXPECT_EQ(drained(queue), (std::vector{1, 4}));
  first.leave_queue();
  EXPECT_TRUE(queue.empty());
}

TEST(TurnQueueTest, TheQueueMayGoFirst) {
  auto queue = std::make_unique<TurnQueue>();
  Numbered one(1);
  std::optional<Numbered> two(2);
  queue->push(one);
  queue->push(*two);
  queue.reset();
  two.reset();
  TurnQueue next;
  one.leave_queue();
  next.push(one);
  EXPECT_EQ(drained(next), std::vector{1});
}

}  // namespace
}  // namespace drun::store
