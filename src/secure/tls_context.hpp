// What all TLS connections of a process share: the key that follows from the job's token, or the
// site's certificates. TLS 1.3 alone, with one of these as the only proof, on both sides.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "secure/certificate.hpp"
#include "secure/token.hpp"

// OpenSSL's.
struct ssl_ctx_st;

namespace drun::secure {

struct TlsLibrary;

// Whether OpenSSL is here; the error says what to install.
[[nodiscard]] Status can_speak_tls();

class TlsContext {
 public:
  // An error if OpenSSL is not there: it says what to install.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> of(const Token& token);
  // The error may also be a sentence that says what is wrong with the files: no PEM, a key of
  // another certificate, one that has expired or that its own authorities do not know. Both sides
  // must have a certificate of the authorities; its names are not looked at, as an agent has no
  // name before it has joined.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> of(const Certificate& certificate);
  // The same for a process that is told the secret() alone.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> of_secret(std::string_view secret);

  static constexpr std::size_t kKeyBytes = 32;

  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  // Of a token kKeyBytes, and the token cannot be had from them.
  [[nodiscard]] const std::string& secret() const { return secret_; }
  [[nodiscard]] bool has_certificate() const { return certified_; }
  // 64 hexadecimal digits, which the status page asks for. Nothing secret can be had from them, and
  // nothing else of the job. With certificates each node's own.
  [[nodiscard]] std::string page_key() const;

 private:
  friend class TlsEngine;

  TlsContext(const TlsLibrary& library, std::string secret, ssl_ctx_st* context);
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> begin(std::string secret);
  [[nodiscard]] Status use(const Certificate& certificate);

  const TlsLibrary& library_;
  std::string secret_;
  ssl_ctx_st* context_;
  bool certified_ = false;
};

}  // namespace drun::secure
