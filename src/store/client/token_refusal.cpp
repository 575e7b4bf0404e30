#include "store/client/token_refusal.hpp"

namespace drun::store {

std::string token_refusal(secure::TlsEngine::Failure failure) {
  using enum secure::TlsEngine::Failure;
  constexpr const char* kSameToken = ": give the same DRUN_TOKEN or --token-file on every node";
  switch (failure) {
    case Broken:
      return "sent what was changed on the way";
    case NoToken:
    case NotTls:
      return std::string("speaks without a token") + kSameToken;
    case NoCertificate:
      return "speaks without a certificate: give --tls-cert, --tls-key and --tls-ca on every node";
    case Untrusted:
      return "has a certificate for which the authorities of --tls-ca do not vouch";
    case Expired:
      return "has a certificate that has expired, or is not valid yet";
    case Unfit:
      return "has a certificate for another use: both clientAuth and serverAuth are needed";
    case Refused:
      return "does not accept the certificate of --tls-cert: its log says why";
    default:
      return std::string("does not know this token") + kSameToken;
  }
}

}  // namespace drun::store
