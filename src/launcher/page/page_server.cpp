#include "launcher/page/page_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace drun::launcher {
namespace {

// After an error of accept(), which a lack of descriptors is.
constexpr std::chrono::seconds kPause{1};
// For the bytes that a caller had under way when it was answered: closing a socket with unread
// bytes takes the answer back.
constexpr std::chrono::milliseconds kFarewell{2'000};
constexpr std::size_t kMostUnread = 64 * 1'024;

using Descriptor = asio::posix::stream_descriptor;

// False: the loop has no room for it.
bool give(FileDescriptor from, Descriptor& to) {
  asio::error_code error;
  (void)to.assign(from.get(), error);
  if (error) return false;
  (void)from.release();
  return true;
}

}  // namespace

struct PageServer::Listener {
  explicit Listener(asio::io_context& io) : socket(io), pause(io) {}
  Descriptor socket;
  asio::steady_timer pause;
};

class PageServer::Caller : public std::enable_shared_from_this<Caller> {
 public:
  explicit Caller(PageServer& server) : server_(&server), socket_(server.io_), limit_(server.io_) {}

  void start(FileDescriptor socket) {
    if (!give(std::move(socket), socket_)) return end();
    set_limit(server_->limits_.request, [this] { send(refusal(408)); });
    read();  // a request that is there already is not idle when others come
  }

  void send(const HttpAnswer& answer, bool head_only = false) {
    if (server_ == nullptr || state_ == State::Answering || state_ == State::Leaving) return;
    state_ = State::Answering;
    head_ = head_of(answer, std::chrono::system_clock::now());
    if (!head_only) body_ = answer.body;
    set_limit(server_->limits_.answer, [this] { end(); });
    write();
  }

  // Its request has not come yet.
  [[nodiscard]] bool is_reading() const { return state_ == State::Reading; }

  // The server forgets it.
  void end() {
    if (server_ == nullptr) return;
    auto& callers = std::exchange(server_, nullptr)->callers_;
    asio::error_code ignored;
    limit_.cancel();
    (void)socket_.close(ignored);
    callers.remove_if([this](const auto& each) { return each.get() == this; });
  }

 private:
  enum class State { Reading, Waiting, Answering, Leaving };

  void set_limit(std::chrono::milliseconds limit, std::function<void()> over) {
    limit_.expires_after(limit);
    limit_.async_wait([self = shared_from_this(), over = std::move(over)](asio::error_code error) {
      if (!error && self->server_ != nullptr) over();
    });
  }

  void wait_for_bytes() {
    socket_.async_wait(Descriptor::wait_read, [self = shared_from_this()](asio::error_code error) {
      if (self->server_ == nullptr) return;
      if (error) return self->end();
      self->read();
    });
  }

  void read() {
    std::array<char, 4'096> buffer;
    for (;;) {
      const auto got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return wait_for_bytes();
      if (got <= 0) return end();
      if (!take({buffer.data(), static_cast<std::size_t>(got)})) return;
    }
  }

  // Whether more is read.
  bool take(std::string_view bytes) {
    if (state_ != State::Reading) {
      unread_ += bytes.size();
      if (unread_ <= kMostUnread) return true;
      end();
      return false;
    }
    const auto step = reader_.take(bytes);
    if (std::holds_alternative<std::monostate>(step)) return true;
    if (const auto* refused = std::get_if<HttpRefusal>(&step)) {
      send(refusal(refused->status));
    } else {
      state_ = State::Waiting;
      set_limit(server_->limits_.answer, [this] { end(); });
      server_->serve(shared_from_this(), std::get<HttpRequest>(step));
    }
    return false;
  }

  void write() {
    for (std::string_view rest = unsent(); !rest.empty(); rest = unsent()) {
      const auto sent =
          ::send(socket_.native_handle(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return wait_to_write();
      if (sent < 0) return end();
      sent_ += static_cast<std::size_t>(sent);
    }
    state_ = State::Leaving;
    body_ = nullptr;
    (void)::shutdown(socket_.native_handle(), SHUT_WR);
    set_limit(kFarewell, [this] { end(); });
    read();
  }

  [[nodiscard]] std::string_view unsent() const {
    if (sent_ < head_.size()) return std::string_view(head_).substr(sent_);
    return body_ ? std::string_view(*body_).substr(sent_ - head_.size()) : std::string_view();
  }

  void wait_to_write() {
    socket_.async_wait(Descriptor::wait_write, [self = shared_from_this()](asio::error_code error) {
      if (self->server_ == nullptr) return;
      if (error) return self->end();
      self->write();
    });
  }

  PageServer* server_;  // null: it has ended
  Descriptor socket_;
  asio::steady_timer limit_;
  State state_ = State::Reading;
  HttpReader reader_;
  std::string head_;
  HttpBody body_;         // null: none is sent
  std::size_t sent_ = 0;  // of both
  std::size_t unread_ = 0;
};

PageServer::PageServer(asio::io_context& io, std::string own_name, Serve serve, Limits limits)
    : io_(io), own_name_(std::move(own_name)), serve_(std::move(serve)), limits_(limits) {}

PageServer::~PageServer() {
  close();
}

void PageServer::listen(std::vector<FileDescriptor> sockets) {
  for (auto& socket : sockets) {
    listeners_.push_back(std::make_shared<Listener>(io_));
    if (give(std::move(socket), listeners_.back()->socket)) wait(listeners_.back());
  }
}

void PageServer::close() {
  asio::error_code ignored;
  for (const auto& listener : listeners_) {
    (void)listener->socket.close(ignored);
    listener->pause.cancel();
  }
  listeners_.clear();
  while (!callers_.empty()) {
    const auto caller = callers_.front();
    caller->end();
  }
}

void PageServer::wait(const std::shared_ptr<Listener>& listener) {
  listener->socket.async_wait(Descriptor::wait_read, [this, listener](asio::error_code error) {
    if (error || !listener->socket.is_open()) return;
    if (accept_all(listener)) return wait(listener);
    listener->pause.expires_after(kPause);
    listener->pause.async_wait([this, listener](asio::error_code cancelled) {
      if (!cancelled && listener->socket.is_open()) wait(listener);
    });
  });
}

bool PageServer::accept_all(const std::shared_ptr<Listener>& listener) {
  for (std::size_t count = 0; count < kMostCallers; ++count) {
    FileDescriptor socket(::accept4(listener->socket.native_handle(), nullptr, nullptr,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      add(std::move(socket));
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    }
  }
  return true;
}

void PageServer::add(FileDescriptor socket) {
  if (callers_.size() >= kMostCallers) {
    // Not one that waits for its answer, which takes a while: idle connections would push it out.
    const auto idle = std::find_if(callers_.begin(), callers_.end(),
                                   [](const auto& caller) { return caller->is_reading(); });
    const auto first = idle != callers_.end() ? *idle : callers_.front();
    first->end();
  }
  callers_.push_back(std::make_shared<Caller>(*this));
  const auto caller = callers_.back();
  caller->start(std::move(socket));
}

void PageServer::serve(const std::shared_ptr<Caller>& caller, const HttpRequest& request) {
  if (!is_own_host(request.host, own_name_)) return caller->send(refusal(421));
  serve_(request, [caller = std::weak_ptr(caller), head = request.head](const HttpAnswer& answer) {
    if (const auto there = caller.lock()) there->send(answer, head);
  });
}

}  // namespace drun::launcher
