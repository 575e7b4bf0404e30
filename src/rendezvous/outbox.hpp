// Collects the actions that the parts of a participant want performed. Numbers watches and
// requests, so that late answers to old ones are recognised.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/participant.hpp"

namespace drun::rendezvous {

class Outbox {
 public:
  template <typename A>
  void push(A action) {
    actions_.emplace_back(std::in_place_type<A>, std::move(action));
  }

  WatchId watch(std::string key, bool prefix) {
    push(WatchAction{++last_watch_, std::move(key), prefix});
    return last_watch_;
  }
  void unwatch(WatchId watch) { push(UnwatchAction{watch}); }

  RequestId commit(Transaction transaction) {
    push(CommitAction{++last_request_, std::move(transaction)});
    return last_request_;
  }

  void log(std::string text, bool warning = false) { push(LogAction{warning, std::move(text)}); }

  void tell(News news) { push(NewsAction{std::move(news)}); }

  [[nodiscard]] std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<Action> actions_;
  WatchId last_watch_ = 0;
  RequestId last_request_ = 0;
};

}  // namespace drun::rendezvous
