// What a program was given to close its connections to strangers with: a token, or a certificate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "drun/base/result.hpp"
#include "secure/certificate.hpp"
#include "secure/tls_context.hpp"
#include "secure/token.hpp"

namespace drun::secure {

struct GivenTls {
  std::optional<Token> token{};
  std::shared_ptr<const TlsContext> tls{};  // null: neither was given
};

// Whether the error of given_tls() is for the user to mend.
[[nodiscard]] inline bool is_users(const Error& error) {
  return error.code() != std::errc::not_supported;
}

// `variable` and `token_file` as in given_token(). The error says that OpenSSL is not there, or is
// a sentence that names variable, flag or file.
[[nodiscard]] Result<GivenTls> given_tls(std::optional<Result<Token>> variable,
                                         const std::string& token_file,
                                         const CertificateFiles& files);

}  // namespace drun::secure
