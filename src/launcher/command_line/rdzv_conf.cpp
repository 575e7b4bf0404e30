#include "launcher/command_line/rdzv_conf.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include "base/decimal.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

using Milliseconds = std::chrono::milliseconds;

// In less, a machine that is only busy would be lost.
constexpr Milliseconds kShortestKeepAlive{1'000};
// A session lives for a day at most, and somewhat longer than a node may be silent.
constexpr Milliseconds kLongestKeepAlive = std::chrono::hours(17);

// The round tells each node of all of them.
constexpr int kMostSuccessors = 16;

// Keys that people write here although they have a flag of their own, and that flag.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kElsewhere{{
    {"backend", "--rdzv-backend"},
    {"endpoint", "--rdzv-endpoint"},
    {"run_id", "--rdzv-id"},
    {"min_nodes", "--nnodes"},
    {"max_nodes", "--nnodes"},
    {"local_addr", "--local-addr"},
}};

// Other names of keys: torch's.
constexpr std::array<std::string_view, 4> kSynonyms{"heartbeat", "ca_cert", "ssl_cert",
                                                    "ssl_cert_key"};

constexpr std::string_view kPassword = "password";

// "join_timeout, last_call_timeout, ..."
std::string known_keys() {
  std::string result;
  for (const char letter : kConfKeys.substr(1, kConfKeys.size() - 2))
    result += letter == '=' ? std::string(1, ',') : std::string(1, letter);
  return result;
}

// One that is at least known to be set elsewhere.
bool is_known(std::string_view key) {
  const std::string listed = ", " + known_keys() + ",";
  const auto is_it = [key](const auto& other) { return other == key; };
  return listed.find(" " + std::string(key) + ",") != std::string::npos ||
         std::any_of(kSynonyms.begin(), kSynonyms.end(), is_it) ||
         std::any_of(kElsewhere.begin(), kElsewhere.end(),
                     [&](const auto& entry) { return is_it(entry.first); });
}

std::string_view key_of(std::string_view item) {
  return trimmed(item.substr(0, item.find('=')), " ");
}

struct Entry {
  const cli::Setting& setting;
  std::string key;
  std::string value;

  [[noreturn]] void refuse(const std::string& why) const {
    throw cli::UsageError(setting.shown + " " + cli::quote(key + "=" + value) + ": " + why);
  }

  [[nodiscard]] Milliseconds seconds() const {
    constexpr double kLongest = 1e9;  // 31 years; a clock in nanoseconds ends at 292
    std::string_view rest = value;
    const bool negative = rest.starts_with('-');
    if (negative) rest.remove_prefix(1);
    const auto number = take_decimal(rest);
    if (!number || !rest.empty() || *number > kLongest) refuse("expected a time in seconds");
    const Milliseconds result(static_cast<std::int64_t>(*number * 1000 + 0.5));
    if (negative || result.count() < 1) refuse("expected a time greater than zero, in seconds");
    return result;
  }

  [[nodiscard]] int integer(int lowest, int highest = 1'000'000) const {
    const cli::Setting part{setting.flag, setting.source, setting.shown + " " + key, value};
    return parse_integer(part, lowest, highest);
  }

  [[nodiscard]] bool boolean() const {
    std::string lower = value;
    for (char& c : lower)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const char* word : {"1", "true", "t", "yes", "y"}) {
      if (lower == word) return true;
    }
    for (const char* word : {"0", "false", "f", "no", "n"}) {
      if (lower == word) return false;
    }
    refuse("expected true or false");
  }
};

void apply(const Entry& entry, GivenConf& given) {
  const std::string& key = entry.key;
  RendezvousConf& conf = given.conf;
  if (key == "join_timeout") {
    given.join_timeout = entry.seconds();
  } else if (key == "timeout") {
    given.timeout = entry.seconds();
  } else if (key == "last_call_timeout") {
    conf.last_call_timeout = entry.seconds();
  } else if (key == "close_timeout") {
    conf.close_timeout = entry.seconds();
  } else if (key == "keep_alive_interval") {
    conf.keep_alive_interval = entry.seconds();
  } else if (key == "keep_alive_max_attempt") {
    conf.keep_alive_max_attempt = entry.integer(1);
  } else if (key == "heartbeat_timeout" || key == "heartbeat") {
    conf.heartbeat_timeout = entry.seconds();
  } else if (key == "read_timeout") {
    conf.read_timeout = entry.seconds();
  } else if (key == "is_host") {
    conf.is_host = entry.boolean();
  } else if (key == "successors") {
    conf.successors = entry.integer(0, kMostSuccessors);
  } else if (key == "quorum") {
    conf.quorum = entry.integer(0);
  } else if (key == "rank") {
    given.rank = entry.integer(0);
  } else if (key == "store_type") {
    if (entry.value != "tcp") {
      entry.refuse("drun's store is reached over TCP only: store_type=tcp");
    }
  } else if (key == "protocol") {
    if (entry.value != "http" && entry.value != "https") entry.refuse("expected http or https");
    given.etcd.tls.used = entry.value == "https";
  } else if (key == "cacert" || key == "ca_cert") {
    given.etcd.tls.ca_file = entry.value;
  } else if (key == "cert" || key == "ssl_cert") {
    given.etcd.tls.certificate_file = entry.value;
  } else if (key == "key" || key == "ssl_cert_key") {
    given.etcd.tls.key_file = entry.value;
  } else if (key == "username") {
    given.etcd.user = entry.value;
  } else if (key == kPassword) {
    given.etcd.password = entry.value;
  } else {
    for (const auto& [name, flag] : kElsewhere) {
      if (key == name) entry.refuse("this is set by " + std::string(flag));
    }
    throw cli::UsageError(entry.setting.shown + ": unknown key " + cli::quote(key) +
                          "; known are " + known_keys());
  }
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

}  // namespace

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
    Entry entry{setting, std::string(key_of(item)), ""};
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
      throw cli::UsageError(setting.shown + ": the key " + cli::quote(entry.key) +
                            " needs a value");
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
