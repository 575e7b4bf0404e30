// The keys of --rdzv-conf as one table. Parsing, messages, completions, the manual page and
// docs/cli.md all read it. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "cli/values.hpp"
#include "launcher/command_line/rdzv_conf.hpp"

namespace drun::launcher {

// One KEY=VALUE, as given. Each function throws UsageError unless the value is what it says.
struct ConfEntry {
  const cli::Setting& setting;
  std::string key;
  std::string value;

  [[noreturn]] void refuse(const std::string& why) const;
  [[nodiscard]] std::chrono::milliseconds time() const;  // greater than zero
  [[nodiscard]] int integer(int lowest, int highest = 1'000'000) const;
  [[nodiscard]] bool boolean() const;
};

// The round tells each node of all of them.
inline constexpr int kMostSuccessors = 16;

struct ConfKey {
  std::string_view name;
  std::string_view synonym;   // what torch calls it elsewhere; "": nothing
  std::string_view fallback;  // the default, for people; "": none to tell
  std::string_view help;      // no full stop at its end
  void (*take)(const ConfEntry& entry, GivenConf& given);
};

// clang-format off
inline constexpr std::array kConfKeys = std::to_array<ConfKey>({
    {"join_timeout", "", "600; static: 900",
     "how long to wait for enough nodes; then drun fails and names the missing ones",
     [](const ConfEntry& entry, GivenConf& given) { given.join_timeout = entry.time(); }},
    {"timeout", "", "",
     "static's name for join_timeout",
     [](const ConfEntry& entry, GivenConf& given) { given.timeout = entry.time(); }},
    {"last_call_timeout", "", "30",
     "with MIN:MAX: how long at most to wait for more nodes once MIN are there",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.last_call_timeout = entry.time(); }},
    {"close_timeout", "", "30",
     "how long the node that runs the store waits for the others to leave",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.close_timeout = entry.time(); }},
    {"keep_alive_interval", "", "2",
     "this times keep_alive_max_attempt is the keep-alive limit: how long a node may be out of touch; "
     "from one second to 17 hours",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.keep_alive_interval = entry.time(); }},
    {"keep_alive_max_attempt", "", "3",
     "see keep_alive_interval",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.keep_alive_max_attempt = entry.integer(1); }},
    {"heartbeat_timeout", "heartbeat", "half the keep-alive limit, at most 5",
     "how long the store's answer to a heartbeat may take, at most half the keep-alive limit",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.heartbeat_timeout = entry.time(); }},
    {"read_timeout", "", "60",
     "how long the store's answer to a request may take; then drun reconnects",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.read_timeout = entry.time(); }},
    {"is_host", "", "by address",
     "true or false: whether this node runs the store; for an endpoint with a virtual address",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.is_host = entry.boolean(); }},
    {"successors", "", "3; static: 0",
     "how many nodes may, one after the other, succeed the one that runs the store",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.successors = entry.integer(0, kMostSuccessors); }},
    {"quorum", "", "0: a majority",
     "how many nodes must be left to go on at a successor",
     [](const ConfEntry& entry, GivenConf& given) { given.conf.quorum = entry.integer(0); }},
    {"store_type", "", "tcp",
     "only tcp is allowed",
     [](const ConfEntry& entry, GivenConf&) {
       if (entry.value != "tcp") entry.refuse("drun's store is reached over TCP only: store_type=tcp");
     }},
    {"rank", "", "",
     "as --node-rank",
     [](const ConfEntry& entry, GivenConf& given) { given.rank = entry.integer(0); }},
    {"protocol", "", "http",
     "etcd: http, or https for TLS",
     [](const ConfEntry& entry, GivenConf& given) {
       if (entry.value != "http" && entry.value != "https") entry.refuse("expected http or https");
       given.etcd.tls.used = entry.value == "https";
     }},
    {"cacert", "ca_cert", "",
     "etcd: the file of the certificates that vouch for the cluster's",
     [](const ConfEntry& entry, GivenConf& given) { given.etcd.tls.ca_file = entry.value; }},
    {"cert", "ssl_cert", "",
     "etcd: the file of drun's certificate",
     [](const ConfEntry& entry, GivenConf& given) { given.etcd.tls.certificate_file = entry.value; }},
    {"key", "ssl_cert_key", "",
     "etcd: the file of that certificate's key",
     [](const ConfEntry& entry, GivenConf& given) { given.etcd.tls.key_file = entry.value; }},
    {"username", "", "",
     "etcd: the user",
     [](const ConfEntry& entry, GivenConf& given) { given.etcd.user = entry.value; }},
    {"password", "", "",
     "etcd: the user's password, without a comma in it",
     [](const ConfEntry& entry, GivenConf& given) { given.etcd.password = entry.value; }},
});
// clang-format on

// The table of flags is a constant, so its words have to be one as well.
inline constexpr std::array kConfChoiceLetters = [] {
  constexpr std::size_t kSize = [] {
    std::size_t size = 0;
    for (const ConfKey& key : kConfKeys)
      size += key.name.size() + 2;
    return size;
  }();
  std::array<char, kSize> letters{};
  std::size_t at = 0;
  for (const ConfKey& key : kConfKeys) {
    letters[at] = at == 0 ? ',' : ' ';
    ++at;
    for (const char letter : key.name)
      letters[at++] = letter;
    letters[at++] = '=';
  }
  return letters;
}();
// As a completion offers them: Flag::choices.
inline constexpr std::string_view kConfChoices(kConfChoiceLetters.data(),
                                               kConfChoiceLetters.size());

}  // namespace drun::launcher
