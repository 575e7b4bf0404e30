#include "launcher/command_line/rdzv_conf.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/lower_case.hpp"
#include "base/printable.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/conf_keys.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

using Milliseconds = std::chrono::milliseconds;

// In less, a machine that is only busy would be lost.
constexpr Milliseconds kShortestKeepAlive{1'000};
// A session lives for a day at most, and somewhat longer than a node may be silent.
constexpr Milliseconds kLongestKeepAlive = std::chrono::hours(17);

// Keys that people write here although they have a flag of their own, and that flag.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kElsewhere{{
    {"backend", "--rdzv-backend"},
    {"endpoint", "--rdzv-endpoint"},
    {"run_id", "--rdzv-id"},
    {"min_nodes", "--nnodes"},
    {"max_nodes", "--nnodes"},
    {"local_addr", "--local-addr"},
}};

constexpr std::string_view kPassword = "password";

// "join_timeout, timeout, ..."
std::string known_keys() {
  std::string result;
  for (const ConfKey& key : kConfKeys)
    result += (result.empty() ? "" : ", ") + std::string(key.name);
  return result;
}

// nullptr: there is no such key.
const ConfKey* find_key(std::string_view name) {
  const auto* const found =
      std::find_if(kConfKeys.begin(), kConfKeys.end(), [name](const ConfKey& key) {
        return key.name == name || (!key.synonym.empty() && key.synonym == name);
      });
  return found == kConfKeys.end() ? nullptr : found;
}

// One that is at least known to be set elsewhere.
bool is_known(std::string_view key) {
  return find_key(key) != nullptr || std::any_of(kElsewhere.begin(), kElsewhere.end(),
                                                 [key](const auto& e) { return e.first == key; });
}

std::string_view key_of(std::string_view item) {
  return trimmed(item.substr(0, item.find('=')), " ");
}

void apply(const ConfEntry& entry, GivenConf& given) {
  if (const ConfKey* key = find_key(entry.key)) return key->take(entry, given);
  for (const auto& [name, flag] : kElsewhere) {
    if (entry.key == name) entry.refuse("this is set by " + std::string(flag));
  }
  throw cli::UsageError(entry.setting.shown + ": unknown key " + in_quotes(entry.key) +
                        "; known are " + known_keys());
}

// What is said about a user or a certificate must not be left out of what is done.
void check_cluster(const cli::Setting& setting, const etcd::Cluster& cluster) {
  const etcd::Tls& tls = cluster.tls;
  const bool files = !tls.ca_file.empty() || !tls.certificate_file.empty() || !tls.key_file.empty();
  if (files && !tls.used)
    throw cli::UsageError(setting.shown + ": cacert, cert and key need protocol=https");
  if (!tls.key_file.empty() && tls.certificate_file.empty())
    throw cli::UsageError(setting.shown + ": key needs cert, the certificate that it belongs to");
  if (cluster.user.empty() != cluster.password.empty())
    throw cli::UsageError(setting.shown + ": username and password need one another");
}

// "--rdzv-conf rank '5'", to be read as the value of a flag.
cli::Setting as_setting(const ConfEntry& entry) {
  return {entry.setting.flag, entry.setting.source, entry.setting.shown + " " + entry.key,
          entry.value};
}

}  // namespace

void ConfEntry::refuse(const std::string& why) const {
  throw cli::UsageError(setting.shown + " " + in_quotes(key + "=" + value) + ": " + why);
}

std::chrono::milliseconds ConfEntry::time() const {
  return cli::parse_duration(as_setting(*this), false);
}

int ConfEntry::integer(int lowest, int highest) const {
  return cli::parse_integer(as_setting(*this), lowest, highest);
}

bool ConfEntry::boolean() const {
  const std::string lower = lower_case(value);
  for (const char* word : {"1", "true", "t", "yes", "y"}) {
    if (lower == word) return true;
  }
  for (const char* word : {"0", "false", "f", "no", "n"}) {
    if (lower == word) return false;
  }
  refuse("expected true or false");
}

std::string without_password(std::string_view conf) {
  std::string shown;
  bool first = true;
  bool behind_password = false;
  for (const std::string& item : split(conf, ',')) {
    const auto key = key_of(item);
    if (behind_password && !is_known(key)) continue;  // perhaps the password's, behind a comma
    behind_password |= key == kPassword;
    if (!std::exchange(first, false)) shown += ',';
    shown += key == kPassword ? item.substr(0, item.find('=')) + "=..." : item;
  }
  return shown;
}

GivenConf parse_conf(const cli::Setting& setting) {
  GivenConf given;
  if (setting.value.find_first_not_of(' ') == std::string::npos) return given;
  for (const std::string& item : split(setting.value, ',')) {
    const auto equals = item.find('=');
    ConfEntry entry{setting, std::string(key_of(item)), ""};
    if (!given.etcd.password.empty() && !is_known(entry.key))
      throw cli::UsageError(setting.shown +
                            ": what follows password= begins with no key; no comma can be in a "
                            "password");
    if (entry.key.empty()) {
      cli::Setting shown = setting;
      shown.value = without_password(setting.value);
      refuse(shown, "expected KEY=VALUE pairs with commas between");
    }
    if (equals != std::string::npos)
      entry.value = trimmed(std::string_view(item).substr(equals + 1), " ");
    if (entry.value.empty()) {
      throw cli::UsageError(setting.shown + ": the key " + in_quotes(entry.key) + " needs a value");
    }
    apply(entry, given);
  }
  check_cluster(setting, given.etcd);
  if (given.join_timeout) given.conf.join_timeout = *given.join_timeout;
  const auto& conf = given.conf;
  const auto keep_alive = conf.keep_alive_interval * conf.keep_alive_max_attempt;
  if (keep_alive < kShortestKeepAlive || keep_alive > kLongestKeepAlive) {
    throw cli::UsageError(setting.shown +
                          ": keep_alive_interval times keep_alive_max_attempt is how long a node "
                          "may be silent; it must be from one second to 17 hours");
  }
  return given;
}

}  // namespace drun::launcher
