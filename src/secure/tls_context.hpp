// What all TLS connections of a process share: the key that follows from the job's token, and how
// it is used. TLS 1.3 alone, with that key as the only proof, on both sides; no certificates.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
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
  // The same for a process that is told the key() alone.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> of_key(std::string_view key);

  static constexpr std::size_t kKeyBytes = 32;

  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  // Secret as the token is, which cannot be had from it.
  [[nodiscard]] const std::string& key() const { return key_; }
  // 64 hexadecimal digits, which the status page asks for. Neither token nor key can be had from
  // it, and nothing else of the job.
  [[nodiscard]] std::string page_key() const;

 private:
  friend class TlsEngine;

  TlsContext(const TlsLibrary& library, std::string key, ssl_ctx_st* context);

  const TlsLibrary& library_;
  std::string key_;
  ssl_ctx_st* context_;
};

}  // namespace drun::secure
