#include "launcher/cluster/variables.hpp"

#include <algorithm>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/fnv1a.hpp"
#include "base/printable.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::launcher::cluster {
namespace {

constexpr std::size_t kLongestShown = 120;
constexpr std::size_t kLongestId = 200;

Error named(const std::string& variable, const std::string& why) {
  return Error(std::make_error_code(std::errc::invalid_argument), variable + ": " + why);
}

}  // namespace

std::optional<std::string> Variables::find(std::string_view name) const {
  const auto found = environment_variable(around_.environment, name);
  if (!found) return std::nullopt;
  std::string value(trimmed(*found));
  return value.empty() ? std::nullopt : std::optional(std::move(value));
}

std::string Variables::shown(std::string_view name) const {
  const auto found = environment_variable(around_.environment, name);
  if (!found) return std::string(name) + " (not set)";
  std::string text = printable(found->substr(0, kLongestShown));
  if (found->size() > kLongestShown) text += "...";
  return std::string(name) + "='" + text + "'";
}

Value Variables::number(std::string_view name, int lowest) const {
  const auto found = find(name);
  if (!found) return problem(std::string(name) + " is not set");
  const auto number = whole_number<int>(*found);
  if (number && *number >= lowest) return value(std::to_string(*number), name);
  return problem(shown(name) + ": expected a whole number from " + std::to_string(lowest));
}

std::optional<int> Variables::plain_number(std::string_view name) const {
  const auto found = find(name);
  return found ? whole_number<int>(*found) : std::nullopt;
}

Value Variables::text(std::string_view name) const {
  const auto found = find(name);
  if (!found) return problem(std::string(name) + " is not set");
  if (found->size() > kLongestId) return problem(shown(name) + " is too long");
  return value(*found, name);
}

Value problem(std::string text) {
  return {"", "", std::move(text)};
}

Value value(std::string text, std::string_view from) {
  return {std::move(text), std::string(from), ""};
}

std::uint16_t port_of(std::uint64_t job, std::uint64_t step) {
  constexpr std::uint64_t kPorts = 10'000;
  return static_cast<std::uint16_t>(20'000 + (job % kPorts + 1'000 * (step % kPorts)) % kPorts);
}

std::uint16_t port_of(std::string_view id) {
  const auto digits = std::min(id.find_first_not_of("0123456789"), id.size());
  // Elements of an array job that share a host must not share a port.
  const bool element = id.substr(digits).starts_with('[');
  const auto number = element ? std::nullopt : whole_number<std::uint64_t>(id.substr(0, digits));
  return port_of(number ? *number : fnv1a(id));
}

std::string at_port(const std::string& host, std::uint16_t port) {
  return to_string(Endpoint{host, port});
}

std::string host_of(const std::string& place) {
  const auto parsed = parse_endpoint(place, 0);
  return parsed ? parsed->host : place;
}

Value meet_at(const Variables& variables, const std::string& host, std::uint16_t port,
              std::string_view from) {
  if (host.empty()) return problem(variables.shown(from) + ": expected a host");
  return value(at_port(host, port), from);
}

bool offers_pmi(const Variables& variables, Allocation& allocation) {
  const auto fd = variables.plain_number("PMI_FD");
  if (!fd || *fd < 3) return false;
  allocation.pmi_fd = fd;
  // As mpiexec reaches it: Hydra's -hosts.
  for (const char* name : {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "PMI_HOSTNAME"}) {
    if (allocation.pmi_host.empty()) allocation.pmi_host = variables.find(name).value_or("");
  }
  if (allocation.pmi_host.empty()) allocation.pmi_host = variables.around().host_name;
  return true;
}

Hosts hosts_in(const Variables& variables, std::string_view name,
               Hosts (*parse)(std::string_view)) {
  const auto list = variables.find(name);
  if (!list) return named(variables.shown(name), "expected a list of hosts");
  auto hosts = parse(*list);
  if (!hosts) return named(variables.shown(name), hosts.error().what());
  return hosts;
}

Hosts hosts_in_file(const Variables& variables, std::string_view name,
                    Hosts (*parse)(std::string_view)) {
  const auto path = variables.find(name);
  const auto& read = variables.around().read_file;
  if (!path) return named(variables.shown(name), "expected a file with the job's hosts");
  const auto text = read ? read(*path) : Result<std::string>();
  if (!text)
    return named(variables.shown(name), "this file cannot be read: " + text.error().what());
  auto hosts = parse(*text);
  if (!hosts) return named(variables.shown(name), hosts.error().what());
  return hosts;
}

}  // namespace drun::launcher::cluster
