#include "ctl/running_command.hpp"

#include "cli/values.hpp"
#include "drun/store/errors.hpp"

namespace drun::ctl {

using store::Client;
using store::ControlQuery;

long long RunningCommand::number(std::size_t index) const {
  return cli::parse_integer<long long>({nullptr, cli::Source::Flag, options_.command, word(index)});
}

Endpoint RunningCommand::store() const {
  return followed(options_.endpoint, deadline(), options_.tls);
}

Result<Client> RunningCommand::connect() const {
  return connect(store(), options_.prefix, options_.raw);
}

Result<Client> RunningCommand::connect_raw() const {
  return connect(store(), "", true);
}

Result<Client> RunningCommand::connect_there() const {
  return connect(options_.endpoint, "", true);
}

Result<ControlQuery> RunningCommand::connect_control() const {
  return ControlQuery::open(store(), deadline(), options_.retry, options_.tls);
}

Result<ControlQuery> RunningCommand::connect_control_there() const {
  return ControlQuery::open(options_.endpoint, deadline(), options_.retry, options_.tls);
}

std::string RunningCommand::key_prefix() const {
  std::string prefix = options_.raw ? "" : "/";
  if (!options_.prefix.empty()) prefix += options_.prefix + "/";
  return prefix;
}

Result<Client> RunningCommand::connect(const Endpoint& place, const std::string& prefix,
                                       bool raw) const {
  store::ClientOptions options;
  options.prefix = prefix;
  options.raw_keys = raw;
  options.retry = options_.retry;
  options.tls = options_.tls;
  auto client = Client::connect(place, deadline(), options);
  if (client || options.tls != nullptr || client.error().code() != store::Errc::Closed)
    return client;
  return Error(store::Errc::Closed,
               client.error().what() + ", as a store does that asks for a token (--token-file)");
}

}  // namespace drun::ctl
