// drunctl: looks into a store and changes it, from the shell.
#include "ctl/drunctl.hpp"

#include <csignal>
#include <exception>

#include "base/environment_variable.hpp"
#include "base/log.hpp"
#include "base/standard_streams.hpp"
#include "cli/usage_error.hpp"

int main(int argc, char** argv) {
  namespace ctl = drun::ctl;
  drun::log::configure("drunctl", drun::log::Level::Info);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    drun::open_standard_streams();
    const auto parsed = ctl::parse({argv + 1, argv + argc}, drun::own_environment());
    if (parsed.options) return ctl::run(*parsed.options);
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
