// What is told of a job while it runs.
#include "base/addresses.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

constexpr std::string_view kUnix = "unix:";
// What the kernel has room for in a socket's address, without the NUL byte.
constexpr std::size_t kLongestSocket = 107;

std::string parse_socket(const cli::Setting& setting, int groups) {
  std::string path = setting.value.substr(kUnix.size());
  if (path.empty()) refuse(setting, "expected the path of a socket behind unix:");
  // Each replica group has one of its own: see belong_to_group().
  const std::string suffix = groups > 0 ? ".group" + std::to_string(groups - 1) : "";
  const std::size_t longest = kLongestSocket - suffix.size();
  if (path.size() > longest)
    refuse(setting, "the path of a socket has at most " + std::to_string(longest) + " bytes" +
                        (groups > 0 ? " (and " + suffix + ")" : "") + ", and this one has " +
                        std::to_string(path.size()));
  return path;
}

// No name is looked up: that takes its time, and would listen wherever the answer says.
Endpoint parse_address(const cli::Setting& setting) {
  if (const auto port = parse_port(setting.value)) return {"127.0.0.1", *port};
  const auto endpoint = parse_endpoint(setting.value, 0);
  const auto other = parse_endpoint(setting.value, 1);
  if (!endpoint || endpoint->port != other->port || numeric_addresses(endpoint->host).empty())
    refuse(setting, "expected PORT, ADDRESS:PORT with an address in numbers, or unix:PATH");
  return *endpoint;
}

// Each group has the port after that of the one before it.
void check_ports(const cli::Setting& setting, const Options& options) {
  constexpr int kHighest = 65'535;
  const int port = options.status_endpoint ? options.status_endpoint->port : 0;
  const int last = options.replica_group < 0 ? options.replica_groups - 1 : options.replica_group;
  if (port != 0 && port + last > kHighest)
    refuse(setting, "each replica group has a port of its own, from this one on: give a lower one");
}

}  // namespace

void build_status(const cli::GivenFlags& flags, Options& options) {
  if (const cli::Setting* setting = flags.find("status-listen")) {
    if (setting->value.starts_with(kUnix))
      options.status_socket = parse_socket(*setting, options.replica_groups);
    else
      options.status_endpoint = parse_address(*setting);
    check_ports(*setting, options);
  }
  options.token_file = cli::parse_file_name(flags, "token-file");
  options.certificate = {cli::parse_file_name(flags, "tls-cert"),
                         cli::parse_file_name(flags, "tls-key"),
                         cli::parse_file_name(flags, "tls-ca")};
  if (const Status complete = options.certificate.complete();
      options.certificate.any() && !complete)
    throw cli::UsageError(complete.error().what());
  if (const cli::Setting* setting = flags.find("metrics-file")) {
    if (setting->value.empty()) refuse(*setting, "expected the name of a file, NAME.prom");
    if (!setting->value.ends_with(".prom"))
      refuse(*setting, "the collector reads only files whose names end in .prom");
    options.metrics_file = setting->value;
  }
  options.summary = flags.on("summary");
}

}  // namespace drun::launcher
