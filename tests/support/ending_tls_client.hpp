// A client with the token that ends TLS as its standard has it, which drun's own never do: they
// close the connection.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "secure/tls_library.hpp"

namespace drun::test {

class EndingTlsClient {
 public:
  explicit EndingTlsClient(std::string key) : key_(std::move(key)) {
    tls_.context_set_data(context_, 0, &key_);
    tls_.context_set_use_psk(context_, use_key);
    ssl_ = tls_.ssl_new(context_);
    tls_.ssl_set_bio(ssl_, in_, out_);
    tls_.ssl_set_connect_state(ssl_);
    tls_.ssl_do_handshake(ssl_);
  }
  EndingTlsClient(const EndingTlsClient&) = delete;
  EndingTlsClient& operator=(const EndingTlsClient&) = delete;
  ~EndingTlsClient() {
    tls_.ssl_free(ssl_);
    tls_.context_free(context_);
  }

  void hear(std::string_view bytes) {
    std::size_t written = 0;
    if (!bytes.empty()) tls_.bio_write(in_, bytes.data(), bytes.size(), &written);
    tls_.ssl_do_handshake(ssl_);
  }
  // What is to be sent: `plain`, and the end of all.
  std::string say_last(std::string_view plain) {
    std::size_t written = 0;
    if (!plain.empty()) tls_.ssl_write(ssl_, plain.data(), plain.size(), &written);
    void* library = ::dlopen("libssl.so.3", RTLD_LAZY | RTLD_NOLOAD);
    reinterpret_cast<decltype(&::SSL_shutdown)>(::dlsym(library, "SSL_shutdown"))(ssl_);
    return say();
  }
  std::string say() {
    std::array<char, 16 * 1024> bytes;
    std::size_t size = 0;
    return tls_.bio_read(out_, bytes.data(), bytes.size(), &size) == 1
               ? std::string(bytes.data(), size)
               : "";
  }

 private:
  static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                     SSL_SESSION** session) {
    constexpr std::array<unsigned char, 2> kCipher{0x13, 0x01};
    const secure::TlsLibrary& tls = *secure::tls_library();
    const auto& key = *static_cast<const std::string*>(tls.context_data(tls.ssl_context(ssl), 0));
    *session = tls.session_new();
    tls.session_set_key(*session, reinterpret_cast<const unsigned char*>(key.data()), key.size());
    tls.session_set_cipher(*session, tls.cipher_find(ssl, kCipher.data()));
    tls.session_set_version(*session, TLS1_3_VERSION);
    *identity = reinterpret_cast<const unsigned char*>("drun");
    *size = 4;
    return 1;
  }

  const secure::TlsLibrary& tls_ = *secure::tls_library();
  std::string key_;
  SSL_CTX* context_ = tls_.context_new(tls_.method());
  BIO* in_ = tls_.bio_new(tls_.bio_memory());   // ssl_'s
  BIO* out_ = tls_.bio_new(tls_.bio_memory());  // likewise
  SSL* ssl_ = nullptr;
};

}  // namespace drun::test
