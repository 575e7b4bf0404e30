#include "store/client/secure_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "drun/store/errors.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

constexpr std::size_t kReceivedAtOnce = 64 * 1024;
constexpr std::size_t kSentAtOnce = 64 * 1024;

}  // namespace

SecureSocket::SecureSocket(FileDescriptor socket,
                           const std::shared_ptr<const secure::TlsContext>& tls)
    : socket_(std::move(socket)) {
  if (tls != nullptr)
    tls_ = std::make_unique<secure::TlsEngine>(tls, secure::TlsEngine::Role::Client);
}

Status SecureSocket::flush(SteadyTime deadline) {
  const std::string bytes = std::exchange(tls_->output(), {});
  return store::send_all(fd(), bytes, deadline);
}

Status SecureSocket::read_more(SteadyTime deadline) {
  if (tls_->state() == secure::TlsEngine::State::Ended) return network_error(ECONNRESET);
  std::array<char, kReceivedAtOnce> bytes;
  const auto got = store::receive_some(fd(), bytes.data(), bytes.size(), deadline);
  if (!got) return got.error();
  tls_->receive({bytes.data(), *got}, plain_);
  if (tls_->state() != secure::TlsEngine::State::Failed) return Done{};
  (void)flush(deadline);  // the other side hears why
  const bool broken = tls_->failure() == secure::TlsEngine::Failure::Broken;
  return Error(broken ? Errc::Malformed : Errc::WrongToken, "it " + token_refusal(tls_->failure()));
}

Status SecureSocket::shake_hands(SteadyTime deadline) {
  for (;;) {
    if (const Status sent = flush(deadline); !sent) return sent;
    if (tls_->is_open()) return Done{};
    if (const Status received = read_more(deadline); !received) return received;
  }
}

// What came before the other side ended is still there to be taken.
Status SecureSocket::hear(SteadyTime deadline) {
  const Status met = shake_hands(deadline);
  return met ? read_more(deadline) : met;
}

Result<std::size_t> SecureSocket::send_some(std::string_view bytes, SteadyTime deadline) {
  if (!tls_) return store::send_some(fd(), bytes, deadline);
  if (const Status met = shake_hands(deadline); !met) return met.error();
  const std::string_view some = bytes.substr(0, kSentAtOnce);
  tls_->send(some);
  if (const Status sent = flush(deadline); !sent) return sent.error();
  return some.size();
}

Status SecureSocket::send_all(std::string_view bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    const auto sent = send_some(bytes, deadline);
    if (!sent) return sent.error();
    bytes.remove_prefix(*sent);
  }
  return Done{};
}

Result<std::size_t> SecureSocket::receive_some(char* buffer, std::size_t size,
                                               SteadyTime deadline) {
  if (!tls_) return store::receive_some(fd(), buffer, size, deadline);
  while (plain_.empty())
    if (const Status received = hear(deadline); !received) return received.error();
  const std::size_t taken = std::min(size, plain_.size());
  std::copy_n(plain_.data(), taken, buffer);
  plain_.erase(0, taken);
  return taken;
}

}  // namespace drun::store
