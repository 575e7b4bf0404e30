#include "store/client/token_refusal.hpp"

namespace drun::store {

std::string token_refusal(secure::TlsEngine::Failure failure) {
  using enum secure::TlsEngine::Failure;
  if (failure == Broken) return "sent what was changed on the way";
  std::string text = failure == NoToken || failure == NotTls ? "speaks without a token"
                                                             : "does not know this token";
  return text + ": give the same DRUN_TOKEN or --token-file on every node";
}

}  // namespace drun::store
