// A name look-up whose answer comes in a turn of an asio loop. One thread: the loop's.
#pragma once

#include <functional>
#include <memory>

#include <asio/io_context.hpp>

#include "store/client/resolve.hpp"

namespace drun::store {

class AsyncLookUp {
 public:
  using Answer = std::function<void(Result<Addresses>)>;  // an error is the bare cause
  using Start = std::function<LookUp(const Endpoint&)>;

  // `io` must outlive this.
  explicit AsyncLookUp(asio::io_context& io, Start start = start_look_up);
  AsyncLookUp(const AsyncLookUp&) = delete;
  AsyncLookUp& operator=(const AsyncLookUp&) = delete;
  ~AsyncLookUp();  // abandons

  // Calls back once, never from inside the call; the callback may destroy this. What was asked
  // before and is not answered yet is abandoned.
  void ask(const Endpoint& endpoint, Answer answer);
  // No call any more, though no answer may come for minutes.
  void abandon();

 private:
  struct Question;
  static void wait(const std::shared_ptr<Question>& question);

  asio::io_context& io_;
  const Start start_;
  std::shared_ptr<Question> question_;  // shared with its pending handler
};

}  // namespace drun::store
