// drunctl: looks into a store and changes it, from the shell.
#include "ctl/drunctl.hpp"

#include <unistd.h>

#include <csignal>
#include <exception>
#include <optional>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/log.hpp"
#include "base/standard_streams.hpp"
#include "cli/usage_error.hpp"
#include "drun/base/result.hpp"
#include "secure/given_tls.hpp"
#include "secure/token_source.hpp"

namespace {

// Of a command that may ask a store. An error that the user can mend is a UsageError.
drun::Status use_token(drun::ctl::CtlOptions& options,
                       std::optional<drun::Result<drun::secure::Token>> variable) {
  using namespace drun;
  if (!ctl::asks_a_store(options)) return Done{};
  const auto given =
      secure::given_tls(std::move(variable), options.token_file, options.certificate);
  if (!given && secure::is_users(given.error())) throw cli::UsageError(given.error().what());
  if (!given) return given.error();
  options.tls = given->tls;
  return Done{};
}

}  // namespace

int main(int argc, char** argv) {
  namespace ctl = drun::ctl;
  drun::log::configure("drunctl", drun::log::Level::Info);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    drun::open_standard_streams();
    auto token = drun::secure::take_token(::environ);
    auto parsed = ctl::parse({argv + 1, argv + argc}, drun::own_environment());
    if (parsed.options) {
      if (const auto taken = use_token(*parsed.options, std::move(token)); !taken)
        return ctl::unreachable(taken.error());
      return ctl::run(*parsed.options);
    }
    ctl::print(parsed.text);
    return ctl::kOk;
  } catch (const ctl::NoReader&) {
    return ctl::kNoReader;
  } catch (const drun::cli::UsageError& error) {
    drun::log::error("{}", error.what());
    return drun::kUsageError;
  } catch (const std::exception& error) {
    drun::log::error("{}", error.what());
    return drun::kDrunFailed;
  }
}
