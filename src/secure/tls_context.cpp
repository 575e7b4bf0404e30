#include "secure/tls_context.hpp"

#include <string.h>

#include <array>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/hex.hpp"
#include "secure/tls_library.hpp"

namespace drun::secure {
namespace {

constexpr std::size_t kKeyBytes = TlsContext::kKeyBytes;
// Other uses of the token get other keys, and no key tells anything of another one.
constexpr std::string_view kExtractLabel = "drun tls psk 1";
constexpr std::string_view kExpandLabel = "agent connection\1";
constexpr std::string_view kPageLabel = "drun status page 1";
constexpr std::string_view kIdentity = "drun";
constexpr std::array<unsigned char, 2> kCipher{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// HKDF with SHA-256 (RFC 5869): one step of each kind gives 32 bytes.
std::string derived(const TlsLibrary& tls, std::string_view token) {
  std::array<unsigned char, kKeyBytes> extracted{};
  std::string key(kKeyBytes, '\0');
  tls.hmac(tls.sha256(), kExtractLabel.data(), static_cast<int>(kExtractLabel.size()),
           bytes_of(token), token.size(), extracted.data(), nullptr);
  tls.hmac(tls.sha256(), extracted.data(), static_cast<int>(extracted.size()),
           bytes_of(kExpandLabel), kExpandLabel.size(),
           reinterpret_cast<unsigned char*>(key.data()), nullptr);
  ::explicit_bzero(extracted.data(), extracted.size());
  return key;
}

const std::string& key_of(const SSL* ssl) {
  const TlsLibrary& tls = *tls_library();
  return *static_cast<const std::string*>(tls.context_data(tls.ssl_context(ssl), 0));
}

// Null: there is no memory for it.
SSL_SESSION* session_of(SSL* ssl) {
  const TlsLibrary& tls = *tls_library();
  SSL_SESSION* session = tls.session_new();
  if (session == nullptr) return nullptr;
  const std::string& key = key_of(ssl);
  if (tls.session_set_key(session, bytes_of(key), key.size()) == 1 &&
      tls.session_set_cipher(session, tls.cipher_find(ssl, kCipher.data())) == 1 &&
      tls.session_set_version(session, TLS1_3_VERSION) == 1)
    return session;
  tls.session_free(session);
  return nullptr;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
            SSL_SESSION** session) {
  *session = session_of(ssl);
  *identity = bytes_of(kIdentity);
  *size = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

// Without a key, as for a stranger's identity, OpenSSL asks for a certificate, which there is not.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(identity), size) != kIdentity) return 1;
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

Error unusable() {
  return Error(std::make_error_code(std::errc::not_supported),
               "OpenSSL's library libssl.so.3 here cannot do TLS 1.3 with a shared key");
}

}  // namespace

Status can_speak_tls() {
  const auto& library = tls_library();
  return library ? Status(Done{}) : Status(library.error());
}

TlsContext::TlsContext(const TlsLibrary& library, std::string key, ssl_ctx_st* context)
    : library_(library), key_(std::move(key)), context_(context) {
  library_.context_set_data(context_, 0, &key_);
}

TlsContext::~TlsContext() {
  library_.context_free(context_);
  wipe(key_);
}

std::string TlsContext::page_key() const {
  std::array<unsigned char, kKeyBytes> bytes{};
  library_.hmac(library_.sha256(), key_.data(), static_cast<int>(key_.size()), bytes_of(kPageLabel),
                kPageLabel.size(), bytes.data(), nullptr);
  std::string text;
  append_hex(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return text;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of(const Token& token) {
  const auto& library = tls_library();
  if (!library) return library.error();
  std::string key = derived(*library, token.text_);
  auto context = of_key(key);
  wipe(key);
  return context;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of_key(std::string_view key) {
  const auto& library = tls_library();
  if (!library) return library.error();
  const TlsLibrary& tls = *library;
  SSL_CTX* made = tls.context_new(tls.method());
  if (made == nullptr) return unusable();
  std::shared_ptr<const TlsContext> context(new TlsContext(tls, std::string(key), made));
  tls.context_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  // Buffers are there only while there is something in them.
  tls.context_ctrl(made, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);
  tls.context_ctrl(made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  const bool is_good =
      key.size() == kKeyBytes &&
      tls.context_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      tls.context_ctrl(made, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
      tls.context_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ==
          1 &&
      tls.context_set_num_tickets(made, 0) == 1;
  if (!is_good) return unusable();
  tls.context_set_use_psk(made, use_key);
  tls.context_set_find_psk(made, find_key);
  return context;
}

}  // namespace drun::secure
