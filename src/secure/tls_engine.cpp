#include "secure/tls_engine.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "secure/tls_library.hpp"

namespace drun::secure {
namespace {

// OpenSSL's memory keeps the size of the largest piece that it has held.
constexpr std::size_t kPiece = 4 * 1024;
constexpr std::size_t kLongestRecord = 16 * 1024;
constexpr char kTlsAlert = 0x15;
constexpr int kUnknownIdentity = SSL_AD_REASON_OFFSET + 115;

}  // namespace

TlsEngine::TlsEngine(std::shared_ptr<const TlsContext> context, Role role)
    : context_(std::move(context)),
      library_(context_->library_),
      ssl_(library_.ssl_new(context_->context_)),
      from_network_(library_.bio_new(library_.bio_memory())),
      to_network_(library_.bio_new(library_.bio_memory())),
      role_(role) {
  if (ssl_ == nullptr || from_network_ == nullptr || to_network_ == nullptr) {
    library_.ssl_free(ssl_);
    library_.bio_free(from_network_);
    library_.bio_free(to_network_);
    throw std::bad_alloc();
  }
  library_.ssl_set_bio(ssl_, from_network_, to_network_);
  if (role == Role::Server) {
    library_.ssl_set_accept_state(ssl_);
    return;
  }
  // A server that knows no key may not show a certificate instead: none is trusted.
  library_.ssl_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
  library_.ssl_set_connect_state(ssl_);
  library_.clear_errors();
  library_.ssl_do_handshake(ssl_);
  collect();
}

TlsEngine::~TlsEngine() {
  library_.ssl_free(ssl_);
}

void TlsEngine::receive(std::string_view bytes, std::string& plain) {
  if (role_ == Role::Client && received_ == 0 && !bytes.empty() && bytes.front() != kTlsHello &&
      bytes.front() != kTlsAlert)
    return fail(Failure::NotTls);
  while (!bytes.empty() && (state_ == State::Handshake || state_ == State::Open)) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    if (state_ == State::Handshake) received_ += piece.size();
    take(piece, plain);
    if (state_ == State::Handshake && received_ > kHandshakeBytes) fail(Failure::Stranger);
  }
}

void TlsEngine::take(std::string_view bytes, std::string& plain) {
  library_.clear_errors();
  std::size_t written = 0;
  if (library_.bio_write(from_network_, bytes.data(), bytes.size(), &written) != 1 ||
      written != bytes.size())
    throw std::bad_alloc();
  go_on(plain);
  collect();
}

// Reading does the handshake too.
void TlsEngine::go_on(std::string& plain) {
  std::array<char, kLongestRecord> record;
  for (;;) {
    std::size_t size = 0;
    const int result = library_.ssl_read(ssl_, record.data(), record.size(), &size);
    if (state_ == State::Handshake && library_.ssl_is_init_finished(ssl_) == 1) {
      // Nothing else could have come of it.
      if (library_.ssl_session_reused(ssl_) != 1) return fail(Failure::Stranger);
      state_ = State::Open;
    }
    if (result == 1) {
      plain.append(record.data(), size);
      continue;
    }
    const int error = library_.ssl_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_READ) return;
    if (error != SSL_ERROR_ZERO_RETURN) return fail(reason());
    state_ = State::Ended;
    return;
  }
}

TlsEngine::Failure TlsEngine::reason() const {
  if (state_ == State::Open) return Failure::Broken;
  const int reason = ERR_GET_REASON(library_.peek_error());
  if (reason == kUnknownIdentity) return Failure::NoToken;
  if (role_ == Role::Client || reason == SSL_R_BINDER_DOES_NOT_VERIFY) return Failure::OtherToken;
  return Failure::Stranger;
}

void TlsEngine::fail(Failure failure) {
  state_ = State::Failed;
  failure_ = failure;
}

void TlsEngine::send(std::string_view plain) {
  library_.clear_errors();
  while (!plain.empty() && state_ == State::Open) {
    std::size_t written = 0;
    const std::string_view piece = plain.substr(0, kLongestRecord);
    if (library_.ssl_write(ssl_, piece.data(), piece.size(), &written) != 1)
      return fail(Failure::Broken);
    plain.remove_prefix(written);
    collect();
  }
}

void TlsEngine::collect() {
  std::array<char, kLongestRecord> bytes;
  std::size_t size = 0;
  while (library_.bio_read(to_network_, bytes.data(), bytes.size(), &size) == 1)
    output_.append(bytes.data(), size);
}

}  // namespace drun::secure
