#include "launcher/process/farewell.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/poll_until.hpp"
#include "secure/tls_engine.hpp"

namespace drun::process {
namespace {

using Clock = std::chrono::steady_clock;

// At a place where one store may end and the next one begins.
constexpr int kTries = 3;
// Of the others, once the first has ended and one has taken it: their machines may be gone.
constexpr std::chrono::milliseconds kOthersLimit{500};

// One who is being told.
class Call {
 public:
  Call(const Words& words, std::shared_ptr<const secure::TlsContext> tls, int tries)
      : words_(&words), tls_context_(std::move(tls)), tries_left_(tries) {
    dial();
  }

  // To be polled; one that has ended is left out by its descriptor.
  [[nodiscard]] pollfd entry() const {
    if (!is_under_way()) return {-1, 0, 0};
    const bool sends = stage_ == Stage::Sending && (!tls_ || !tls_->output().empty());
    return {socket_.get(), static_cast<short>(sends ? POLLOUT : POLLIN), 0};
  }
  void on_ready() {
    if (stage_ == Stage::Sending) return tls_ ? send_secure() : send();
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
    reached_ = false;
    if (tls_context_ != nullptr)
      tls_ = std::make_unique<secure::TlsEngine>(tls_context_, secure::TlsEngine::Role::Client);
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
    reached_ = true;
  }
  // Its bytes go when the store has proved what it is.
  void send_secure() {
    std::string& output = tls_->output();
    const ssize_t n = ::send(socket_.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return lose();
    if (n > 0) {
      output.erase(0, static_cast<std::size_t>(n));
      reached_ = true;
    }
    if (!output.empty()) return;
    if (tls_->is_open() && rest_.empty()) {
      ::shutdown(socket_.get(), SHUT_WR);
      stage_ = Stage::Sent;
      return;
    }
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    std::string ignored;
    if (got > 0) tls_->receive({bytes, static_cast<std::size_t>(got)}, ignored);
    if (got <= 0 || tls_->state() == secure::TlsEngine::State::Ended) return lose();
    if (tls_->state() == secure::TlsEngine::State::Failed)
      stage_ = Stage::Failed;
    else if (tls_->is_open())
      tls_->send(std::exchange(rest_, {}));
  }
  // It may have ended before it had read it, or had no room: whoever has never answered is not
  // there.
  void lose() {
    stage_ = Stage::Failed;
    if (reached_ && tries_left_ > 0) dial();
  }
  void await_close() {
    char ignored[512];
    const ssize_t n = ::recv(socket_.get(), ignored, sizeof ignored, 0);
    if (n == 0) stage_ = Stage::Taken;
    if (n < 0 && errno != EAGAIN && errno != EINTR) lose();
  }

  const Words* words_;
  std::shared_ptr<const secure::TlsContext> tls_context_;
  std::unique_ptr<secure::TlsEngine> tls_;
  int tries_left_;
  std::string_view rest_;
  FileDescriptor socket_;
  Stage stage_ = Stage::Failed;
  bool reached_ = false;  // it has taken something
};

// Until one of them took it, and the others have it or cannot be reached. `first`: there is a store
// that should know.
void await(std::vector<Call> calls, bool first) {
  auto deadline = Clock::now() + kFarewellLimit;
  std::vector<pollfd> entries(calls.size());
  for (bool was_taken = false;;) {
    const bool taken =
        std::any_of(calls.begin(), calls.end(), [](const Call& call) { return call.took_it(); });
    const bool awaited = std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
      return call.is_under_way() && !(taken && call.has_it());
    });
    if (!awaited) return;
    const bool over = !first || calls.front().has_it() || !calls.front().is_under_way();
    if (taken && over && !std::exchange(was_taken, true))
      deadline = std::min(deadline, Clock::now() + kOthersLimit);
    std::transform(calls.begin(), calls.end(), entries.begin(),
                   [](const Call& call) { return call.entry(); });
    if (poll_until(entries, deadline) <= 0) return;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (entries[i].revents != 0) calls[i].on_ready();
    }
  }
}

}  // namespace

// All of them, since a store that took it may be lost before its next one has begun.
void say(const Farewell& farewell) {
  const Words first{farewell.address, farewell.bytes};
  std::shared_ptr<const secure::TlsContext> tls;
  if (!farewell.key.empty()) {
    const auto made = secure::TlsContext::of_secret(farewell.key);
    if (!made) return;  // the lease ends by itself
    tls = *made;
  }
  std::vector<Call> calls;
  calls.reserve(farewell.others.size() + 1);
  if (!farewell.address.empty()) calls.emplace_back(first, tls, 1);
  for (const Words& words : farewell.others)
    calls.emplace_back(words, tls, kTries);
  if (!calls.empty()) await(std::move(calls), !farewell.address.empty());
}

}  // namespace drun::process
