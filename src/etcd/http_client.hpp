// HTTP POSTs to one server, by libcurl, in a thread of its own: whatever libcurl does meanwhile,
// the caller's loop goes on. Names are the caller's to look up.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/mailbox.hpp"
#include "drun/base/endpoint.hpp"
#include "etcd/etcd_fsm.hpp"
#include "etcd/etcd_options.hpp"

namespace drun::etcd {

struct HttpServer {
  Endpoint endpoint;
  // Numeric, without a %scope; empty: the host is one itself, with or without.
  std::vector<std::string> addresses;
};

// The two ends of the connection that brought an answer, numeric; empty if there was none.
struct HttpEnds {
  Endpoint local;
  Endpoint remote;
};

class HttpClient {
 public:
  struct Calls {
    std::function<void(std::uint64_t call, const EtcdReply& reply, const HttpEnds& ends)> replied;
    std::function<void(std::uint64_t call, std::string_view bytes)> streamed;
  };

  // `io` must outlive this. Calls back from `io`'s thread, never from inside a call. Precondition:
  // curl_library() is there. Throws std::system_error if there can be no thread.
  HttpClient(asio::io_context& io, const Tls& tls, Calls calls);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  // Drops everything; no call any more. A thread that hangs, at a file of a server that is gone, is
  // left behind after a while.
  ~HttpClient();

  // `token`: for the header Authorization, unless it is empty. The numbers of calls must grow.
  void post(const HttpServer& server, const EtcdCall& call, const std::string& token);
  void cancel(std::uint64_t call);
  // Cancels all calls and closes all connections.
  void drop();

 private:
  struct Post {
    HttpServer server;
    EtcdCall call;
    std::string token;
  };
  struct Cancel {
    std::uint64_t call = 0;
  };
  struct Drop {};
  struct Quit {};
  using Order = std::variant<Post, Cancel, Drop, Quit>;

  struct Answer {
    std::uint64_t call = 0;
    EtcdReply reply;
    HttpEnds ends;
  };
  struct Piece {
    std::uint64_t call = 0;
    std::string bytes;
  };
  struct Ended {};
  using News = std::variant<Answer, Piece, Ended>;

  class Worker;
  // What the two threads share.
  struct Desk {
    Mailbox<Order> orders;
    Mailbox<News> news;
    std::atomic<std::uint64_t> taken{0};  // of the orders
  };

  void order(Order order);
  void await_news();
  void read_news();

  const Calls calls_;
  const std::shared_ptr<Desk> desk_;  // a thread that is left behind keeps it
  std::uint64_t ordered_ = 0;
  std::uint64_t posted_ = 0;   // the last call
  std::uint64_t dropped_ = 0;  // this one and all before it
  asio::posix::stream_descriptor readable_;
  std::shared_ptr<HttpClient*> self_;  // null in handlers when this is gone
  std::thread thread_;
};

}  // namespace drun::etcd
