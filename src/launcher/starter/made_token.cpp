#include "launcher/starter/made_token.hpp"

#include "base/log.hpp"
#include "secure/tls_context.hpp"

namespace drun::launcher {

std::optional<secure::Token> made_token(const Options& options) {
  if (!options.makes_token || options.token || !options.token_file.empty() ||
      options.certificate.any())
    return std::nullopt;
  const Status possible = secure::can_speak_tls();
  if (possible) return secure::Token::made();
  log::debug("no token is made for the job: {}", possible.error().what());
  return std::nullopt;
}

}  // namespace drun::launcher
