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

// Alerts of RFC 8446, 6.2, by which a side says that it does not accept a certificate, or misses
// one.
bool refuses_certificate(int reason) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
         alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

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
  if (library_.ssl_set_data(ssl_, 0, &job_) != 1) {
    library_.ssl_free(ssl_);
    throw std::bad_alloc();
  }
  if (role == Role::Server) {
    library_.ssl_set_accept_state(ssl_);
    return;
  }
  // A server that does not know the token may not show a certificate instead: none is trusted. Of a
  // server OpenSSL would ask more of the key than there is.
  if (!context_->has_certificate()) library_.ssl_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
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
    return fail(context_->has_certificate() ? Failure::NoCertificate : Failure::NotTls);
  while (!bytes.empty() && (state_ == State::Handshake || state_ == State::Open)) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    if (state_ == State::Handshake) received_ += piece.size();
    take(piece, plain);
    const std::size_t most =
        context_->has_certificate() ? kCertifiedHandshakeBytes : kHandshakeBytes;
    if (state_ == State::Handshake && received_ > most) fail(Failure::Stranger);
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
      if (!is_proven()) return fail(Failure::Stranger);  // nothing else could have come of it
      state_ = State::Open;
    }
    if (result == 1) {
      plain.append(record.data(), size);
      heard_ = true;
      continue;
    }
    const int error = library_.ssl_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_READ) return;
    if (error != SSL_ERROR_ZERO_RETURN) return fail(reason());
    state_ = State::Ended;
    return;
  }
}

// OpenSSL has checked it before: twice, as all depends on it.
bool TlsEngine::is_proven() const {
  return context_->has_certificate() ? library_.ssl_verify_result(ssl_) == X509_V_OK &&
                                           library_.ssl_peer_certificate(ssl_) != nullptr
                                     : library_.ssl_session_reused(ssl_) == 1;
}

TlsEngine::Failure TlsEngine::reason() const {
  if (context_->has_certificate()) return reason_with_certificates();
  if (state_ == State::Open) return Failure::Broken;
  const int reason = ERR_GET_REASON(library_.peek_error());
  if (reason == kUnknownIdentity) return Failure::NoToken;
  if (role_ == Role::Client || reason == SSL_R_BINDER_DOES_NOT_VERIFY) return Failure::OtherToken;
  return Failure::Stranger;
}

// A client is done with its handshake before the server has looked at its certificate.
TlsEngine::Failure TlsEngine::reason_with_certificates() const {
  const int reason = ERR_GET_REASON(library_.peek_error());
  if (!heard_ && refuses_certificate(reason)) return Failure::Refused;
  if (state_ == State::Open) return Failure::Broken;
  // One with a token finds nothing to show.
  if (reason == kUnknownIdentity || reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE ||
      reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return Failure::NoCertificate;
  if (reason != SSL_R_CERTIFICATE_VERIFY_FAILED) return Failure::Stranger;
  switch (library_.ssl_verify_result(ssl_)) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Failure::Expired;
    case X509_V_ERR_INVALID_PURPOSE:
      return Failure::Unfit;
    default:
      return Failure::Untrusted;
  }
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
