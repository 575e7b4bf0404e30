// Those who wait for their turn, in the order in which they came.
#pragma once

namespace drun::store {

// One that leaves it, for good or to be served, is found without a search: thousands may go at
// once.
class TurnQueue {
 public:
  // The base of what may wait in a queue, in one at a time. It leaves that with its destructor.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { leave_queue(); }

    // Nothing happens if it waits nowhere.
    void leave_queue() {
      if (next_ == nullptr) return;
      previous_->next_ = next_;
      next_->previous_ = previous_;
      previous_ = next_ = nullptr;
    }

   private:
    friend class TurnQueue;

    Waiter* previous_ = nullptr;
    Waiter* next_ = nullptr;
  };

  TurnQueue() { ends_.previous_ = ends_.next_ = &ends_; }

  [[nodiscard]] bool empty() const { return ends_.next_ == &ends_; }
  // Precondition: it waits nowhere.
  void push(Waiter& waiter) {
    waiter.previous_ = ends_.previous_;
    waiter.next_ = &ends_;
    ends_.previous_->next_ = &waiter;
    ends_.previous_ = &waiter;
  }
  // The first, who waits no longer. Precondition: not empty.
  Waiter& pop() {
    Waiter& first = *ends_.next_;
    first.leave_queue();
    return first;
  }

 private:
  Waiter ends_;  // in front of the first and behind the last
};

}  // namespace drun::store
