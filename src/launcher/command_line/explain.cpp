#include "launcher/command_line/explain.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/duration_text.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"
#include "base/split.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/rdzv_conf.hpp"

namespace drun::launcher {
namespace {

std::string pad(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

struct Explained {
  std::string_view name;
  std::string value;
  std::string origin;  // "": not worth a word
};

// After a value that is wider than most, the rest goes on a line of its own.
std::string columns(const std::vector<Explained>& rows) {
  constexpr std::size_t kWidestValue = 32;
  std::size_t names = 0;
  std::size_t values = 0;
  for (const Explained& row : rows) {
    names = std::max(names, row.name.size());
    if (row.value.size() <= kWidestValue) values = std::max(values, row.value.size());
  }
  std::string result;
  for (const Explained& row : rows) {
    result += pad(std::string(row.name), names) + "  ";
    if (row.origin.empty()) {
      result += row.value + "\n";
      continue;
    }
    if (row.value.size() > values) result += row.value + "\n" + pad("", names) + "  ";
    result += pad(row.value.size() > values ? "" : row.value, values) + "  " + row.origin + "\n";
  }
  return result;
}

// -x: of each value the name, for what it is set to may be a secret.
std::string names_alone(std::string_view values) {
  std::string result;
  while (!values.empty()) {
    const std::string_view value = take_until(values, cli::kBetweenValues);
    result += (result.empty() ? "" : " ") + std::string(value.substr(0, value.find('=')));
  }
  return result;
}

// As it may be shown.
std::string shown_value(std::string_view flag, const std::string& value) {
  if (flag == "rdzv-conf") return without_password(value);
  if (flag == "export") return names_alone(value);
  std::string result = value;
  std::replace(result.begin(), result.end(), cli::kBetweenValues, ' ');
  return result;
}

}  // namespace

std::string explain_text(const cli::GivenFlags& flags, const Options& options) {
  std::vector<Explained> given;
  std::vector<Explained> defaults;
  for (const cli::Flag& flag : drun_program(false).flags) {
    if (!flag.has_variable() || flag.name == "explain") continue;
    const cli::Setting* setting = flags.find(flag.name);
    const bool toggle = !flag.takes_value();
    std::string value = "-";
    if (setting != nullptr) {
      value = toggle ? (setting->value == "0" ? "off" : "on")
                     : shell_quoted(shown_value(flag.name, setting->value));
    } else if (toggle) {
      value = "off";
    } else if (!flag.fallback.empty()) {
      value = flag.fallback;
    }
    if (setting == nullptr) {
      defaults.push_back({flag.name, value, ""});
    } else {
      std::string over = setting->over;  // "PET_RDZV_CONF=..."
      if (const auto begin = over.find('=') + 1; begin != 0)
        over = over.substr(0, begin) + shown_value(flag.name, over.substr(begin));
      if (!over.empty()) over = " over " + printable(over);
      const bool inferred = setting->source == cli::Source::Inferred;
      given.push_back({flag.name, value, (inferred ? "from " : "") + setting->shown + over});
    }
  }
  std::string result;
  if (!given.empty()) result += "Given:\n" + columns(given) + "\n";
  result += "Defaults:\n" + columns(defaults);
  const RendezvousConf& conf = options.conf;
  result += "\nDecided from these:\n";
  const auto add = [&](const char* name, const std::string& value) {
    result += pad(name, 20) + " " + value + "\n";
  };
  const bool private_store = options.backend == Backend::Standalone || options.endpoint.port == 0;
  std::string nodes = std::to_string(options.min_nodes);
  if (options.min_nodes != options.max_nodes) {
    nodes += " to " + std::to_string(options.max_nodes);
    if (options.node_step > 1) nodes += ", in steps of " + std::to_string(options.node_step);
  }
  add("nodes", nodes);
  if (options.replica_groups > 0)
    add("replica groups", std::to_string(options.replica_groups) +
                              (options.start ? ", each of so many hosts"
                               : options.replica_group < 0
                                   ? ", all on this machine"
                                   : ", this is number " + std::to_string(options.replica_group)));
  add("workers per node", std::to_string(options.nproc_per_node));
  add("backend", private_store                      ? "standalone"
                 : options.backend == Backend::C10d ? "c10d"
                 : options.backend == Backend::Etcd ? "etcd"
                                                    : "static");
  add("endpoint", private_store ? "a free port of this machine" : meeting_place(options));
  add("job id", options.fresh_run_id ? "a fresh one" : options.run_id);
  const std::string rank = options.node_rank ? std::to_string(*options.node_rank) : "any";
  add("node rank",
      options.node_rank_is_wish && options.node_rank ? "any, " + rank + " if it is free" : rank);
  if (options.rank_order == rendezvous::RankOrder::Topology)
    add("in the network", options.network.empty() ? "nobody knows where" : options.network);
  const bool with_token = !options.worker_store_chosen && options.replica_groups == 0;
  add("workers' store", with_token ? "agent; with a token local" : to_string(options.worker_store));
  add("on SIGTERM", options.leave_on_sigterm ? "leave" : "stop");
  add("join timeout", exact_duration(conf.join_timeout));
  add("last call timeout", exact_duration(conf.last_call_timeout));
  add("close timeout", exact_duration(conf.close_timeout));
  add("keep alive", exact_duration(conf.keep_alive_interval) + " x " +
                        std::to_string(conf.keep_alive_max_attempt));
  if (!options.notes.empty()) result += "\nWarnings:\n";
  for (const std::string& note : options.notes)
    result += note + "\n";
  return result;
}

}  // namespace drun::launcher
