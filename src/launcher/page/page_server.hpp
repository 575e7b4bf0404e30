// The sockets of the status page: takes a few callers at a time, reads one request of each, sends
// one answer, and is rid of them. A caller that is slow, endless or hostile costs a descriptor and
// a few KiB for some seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "launcher/page/http_answer.hpp"
#include "launcher/page/http_request.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class PageServer {
 public:
  // More callers push out the one that came first, of those whose request has not come.
  static constexpr std::size_t kMostCallers = 32;

  struct Limits {
    std::chrono::milliseconds request{10'000};  // until a request has come, from the connection on
    std::chrono::milliseconds answer{30'000};   // until the answer has gone, from the request on
  };

  // Once, at once or later, from the loop; a caller who has gone by then gets nothing.
  using Answer = std::function<void(HttpAnswer)>;
  // Called from the loop.
  using Serve = std::function<void(const HttpRequest&, Answer)>;

  // `own_name`: this machine's, by which it may be asked. That holds for a socket in a folder, too:
  // ssh -L brings a browser there.
  PageServer(asio::io_context& io, std::string own_name, Serve serve, Limits limits);
  PageServer(asio::io_context& io, std::string own_name, Serve serve)
      : PageServer(io, std::move(own_name), std::move(serve), Limits()) {}
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;
  ~PageServer();

  // Sockets that listen.
  void listen(std::vector<FileDescriptor> sockets);
  // Ends everything; nothing is called afterwards.
  void close();

 private:
  class Caller;
  struct Listener;

  void wait(const std::shared_ptr<Listener>& listener);
  // False: there is no descriptor for it.
  [[nodiscard]] bool accept_all(const std::shared_ptr<Listener>& listener);
  void add(FileDescriptor socket);
  void serve(const std::shared_ptr<Caller>& caller, const HttpRequest& request);

  asio::io_context& io_;
  const std::string own_name_;
  const Serve serve_;
  const Limits limits_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  // Shared with the handlers that the loop still has of them, which find them closed.
  std::list<std::shared_ptr<Caller>> callers_;
};

}  // namespace drun::launcher
