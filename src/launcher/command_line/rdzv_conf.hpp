// --rdzv-conf: "join_timeout=5m,is_host=true". Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cli/parse.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

struct GivenConf {
  RendezvousConf conf;
  std::optional<std::chrono::milliseconds> join_timeout;  // as given
  std::optional<std::chrono::milliseconds> timeout;       // the static backend's name for it
  std::optional<int> rank;                                // the static backend's --node-rank
  etcd::Cluster etcd;                                     // without its endpoints
};

// Unknown keys and bad values are refused by name: throws UsageError.
[[nodiscard]] GivenConf parse_conf(const cli::Setting& setting);

// The same text without the password in it, to be shown.
[[nodiscard]] std::string without_password(std::string_view conf);

}  // namespace drun::launcher
