#include "launcher/process/farewell.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/poll_until.hpp"

namespace drun::process {
namespace {

using Clock = std::chrono::steady_clock;

// At a place where one store may end and the next one begins.
constexpr int kTries = 3;

// One who is being told.
class Call {
 public:
  Call(const Words& words, int tries) : words_(&words), tries_left_(tries) { dial(); }

  // To be polled; one that has ended is left out by its descriptor.
  [[nodiscard]] pollfd entry() const {
    if (!is_under_way()) return {-1, 0, 0};
    return {socket_.get(), static_cast<short>(stage_ == Stage::Sending ? POLLOUT : POLLIN), 0};
  }
  void on_ready() {
    if (stage_ == Stage::Sending) return send();
    if (stage_ == Stage::Sent) await_close();
  }

  [[nodiscard]] bool is_under_way() const {
    return stage_ == Stage::Sending || stage_ == Stage::Sent;
  }
  // Whoever listens there reads it, though perhaps later.
  [[nodiscard]] bool has_it() const { return stage_ == Stage::Sent || took_it(); }
  [[nodiscard]] bool took_it() const { return stage_ == Stage::Taken; }

 private:
  enum class Stage { Sending, Sent, Taken, Failed };

  void dial() {
    --tries_left_;
    stage_ = Stage::Failed;
    rest_ = words_->bytes;
    sockaddr_storage address{};
    const std::size_t size = words_->address.size();
    if (size < sizeof(sa_family_t) || size > sizeof address) return;
    std::memcpy(&address, words_->address.data(), size);
    socket_.reset(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return;
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                  static_cast<socklen_t>(size)) != 0 &&
        errno != EINPROGRESS)
      return;
    stage_ = Stage::Sending;
  }

  void send() {
    const ssize_t n = ::send(socket_.get(), rest_.data(), rest_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) stage_ = Stage::Failed;
    if (n >= 0) rest_.remove_prefix(static_cast<std::size_t>(n));
    if (stage_ == Stage::Failed || !rest_.empty()) return;
    ::shutdown(socket_.get(), SHUT_WR);
    stage_ = Stage::Sent;
  }
  void await_close() {
    char ignored[512];
    const ssize_t n = ::recv(socket_.get(), ignored, sizeof ignored, 0);
    if (n == 0) stage_ = Stage::Taken;
    if (n >= 0 || errno == EAGAIN || errno == EINTR) return;
    stage_ = Stage::Failed;
    if (tries_left_ > 0) dial();  // it may have ended before it had read it
  }

  const Words* words_;
  int tries_left_;
  std::string_view rest_;
  FileDescriptor socket_;
  Stage stage_ = Stage::Failed;
};

// Whether one of them took it.
bool tell(const std::vector<Words>& all, int tries) {
  const auto deadline = Clock::now() + kFarewellLimit;
  std::vector<Call> calls;
  calls.reserve(all.size());
  for (const Words& words : all)
    calls.emplace_back(words, tries);
  std::vector<pollfd> entries(calls.size());
  for (;;) {
    const bool taken =
        std::any_of(calls.begin(), calls.end(), [](const Call& call) { return call.took_it(); });
    const bool awaited = std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
      return call.is_under_way() && !(taken && call.has_it());
    });
    if (!awaited) return taken;
    std::transform(calls.begin(), calls.end(), entries.begin(),
                   [](const Call& call) { return call.entry(); });
    if (poll_until(entries, deadline) <= 0) return taken;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (entries[i].revents != 0) calls[i].on_ready();
    }
  }
}

}  // namespace

void say(const Farewell& farewell) {
  if (!farewell.address.empty() && tell({{farewell.address, farewell.bytes}}, 1)) return;
  if (!farewell.others.empty()) tell(farewell.others, kTries);
}

}  // namespace drun::process
