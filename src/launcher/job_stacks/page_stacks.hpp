// POST /stacks of the status page: the stacks of all ranks, for a client with the page's key.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "drun/base/result.hpp"
#include "launcher/page/http_request.hpp"
#include "launcher/page/page_server.hpp"
#include "secure/token.hpp"
#include "secure/token_gate.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class PageStacks {
 public:
  static constexpr const char* kPath = "/stacks";
  // Beyond what the stacks of a job take that has nodes which do not answer.
  static constexpr std::chrono::seconds kLimit{25};

  // Once, from the loop, at once or later.
  using Done = std::function<void(const Result<std::string>& text)>;
  using Take = std::function<void(Done)>;

  // `key` must outlive this; `guessable` as TokenGate has it. `take` gives the stacks as text.
  PageStacks(asio::io_context& io, const secure::Token& key, bool guessable, Take take);

  // A request for kPath, whatever its method. A request that comes while others wait gets their
  // answer.
  void serve(const HttpRequest& request, const PageServer::Answer& answer,
             std::chrono::steady_clock::time_point now);
  // Nobody is told anything any more.
  void cancel();

 private:
  void tell_all(const HttpAnswer& answer);

  const Take take_;
  secure::TokenGate gate_;
  DeadlineTimer limit_;
  std::vector<PageServer::Answer> waiting_;
  int look_ = 0;  // the number of the one that is waited for; others come too late
};

}  // namespace drun::launcher
