#include "secure/given_tls.hpp"

#include <system_error>
#include <utility>

#include "secure/token_source.hpp"

namespace drun::secure {

Result<GivenTls> given_tls(std::optional<Result<Token>> variable, const std::string& token_file,
                           const CertificateFiles& files) {
  auto token = given_token(std::move(variable), token_file);
  if (!token) return token.error();
  if (*token && files.any())
    return Error(std::make_error_code(std::errc::invalid_argument),
                 "there are a token and a certificate: give one of them, --token-file (or "
                 "DRUN_TOKEN) or --tls-cert");
  GivenTls given{std::move(*token), nullptr};
  if (!given.token && !files.any()) return given;
  auto certificate = files.any() ? read_certificate(files) : Result<Certificate>(Certificate());
  if (!certificate) return certificate.error();
  if (const Status speaks = can_speak_tls(); !speaks)
    return Error(std::make_error_code(std::errc::not_supported), speaks.error().what());
  auto context = given.token ? TlsContext::of(*given.token) : TlsContext::of(*certificate);
  if (!context) return context.error();
  given.tls = std::move(*context);
  return given;
}

}  // namespace drun::secure
