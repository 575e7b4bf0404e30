// What all TLS connections of a process share: the key that follows from the job's token, or the
// site's certificates. TLS 1.3 alone, with one of these as the only proof, on both sides.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "secure/certificate.hpp"
#include "secure/token.hpp"

// OpenSSL's.
struct ssl_ctx_st;
struct ssl_st;
struct ssl_session_st;
struct evp_md_st;

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

  // For of_secret(): of a token a key, and the token cannot be had from it.
  [[nodiscard]] const std::string& secret() const;
  [[nodiscard]] bool has_certificate() const { return has_certificate_; }
  // Of a store: the token with which the job of that name, as it is in keys, reaches what is its
  // own there, and nothing else. It follows from the store's token, and nothing follows from it.
  // An error: this one is a job's already, or only the key is known, or the name is too long.
  [[nodiscard]] Result<Token> job_token(std::string_view job) const;
  // 64 hexadecimal digits, which the status page asks for. Nothing secret can be had from them, and
  // nothing else of the job. With certificates each node's own.
  [[nodiscard]] std::string page_key() const;

 private:
  friend class TlsEngine;

  // What a client says that it has.
  struct Claim {
    std::string key;
    std::string job;  // empty: all
  };
  TlsContext(const TlsLibrary& library, ssl_ctx_st* context)
      : library_(library), context_(context) {}
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> begin();
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> with_key(std::string key,
                                                                          std::string identity,
                                                                          std::string jobs_secret);
  [[nodiscard]] Status use(const Certificate& certificate);
  // OpenSSL's callbacks.
  static int show_key(ssl_st* ssl, const evp_md_st* digest, const unsigned char** identity,
                      std::size_t* size, ssl_session_st** session);
  static int find_key(ssl_st* ssl, const unsigned char* identity, std::size_t size,
                      ssl_session_st** session);
  // Nullopt: it is not drun's.
  [[nodiscard]] std::optional<Claim> claim_of(std::string_view identity) const;

  const TlsLibrary& library_;
  std::string key_{};
  std::string identity_{};     // which a client shows
  std::string jobs_secret_{};  // empty: it has no jobs
  std::string handed_over_{};  // secret(), if that is more than the key
  bool has_certificate_ = false;
  ssl_ctx_st* context_;
};

}  // namespace drun::secure
