#include "launcher/command_line/options_help.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/shell_quote.hpp"

#ifndef DRUN_VERSION
#error "DRUN_VERSION must be defined by the build"
#endif

namespace drun::launcher {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // where descriptions begin

// Words of `text` in lines from column `indent` to kWidth; the first line begins at `at`.
void append_wrapped(std::string& result, std::string_view text, std::size_t at,
                    std::size_t indent) {
  while (!text.empty()) {
    const auto blank = std::min(text.find(' '), text.size());
    const bool start = at == indent;
    if (!start && at + 1 + blank > kWidth) {
      result += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (!start) {
      result += ' ';
      ++at;
    }
    result += text.substr(0, blank);
    at += blank;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  result += "\n";
}

void append_flag(std::string& result, const Flag& flag) {
  std::string name =
      flag.letter != 0 ? std::string{' ', ' ', '-', flag.letter, ',', ' '} : "      ";
  name += "--" + std::string(flag.name);
  if (!flag.metavar.empty()) name += " " + std::string(flag.metavar);
  std::string help(flag.help);
  if (!flag.fallback.empty() && flag.fallback != "default") {
    help += " (default " + std::string(flag.fallback) + ")";
  }
  result += name;
  if (name.size() + 2 > kColumn) {
    result += "\n" + std::string(kColumn, ' ');
  } else {
    result += std::string(kColumn - name.size(), ' ');
  }
  append_wrapped(result, help, kColumn, kColumn);
}

bool listed(const Flag& flag, Group group, bool launch) {
  return flag.group == group && flag.readiness == Readiness::Ready &&
         (flag.origin != Origin::Launch || launch);
}

constexpr std::array kGroups{Group::Job,      Group::Rendezvous, Group::Program,
                             Group::Stopping, Group::Output,     Group::Logs,
                             Group::Devices,  Group::Inspect,    Group::Compatibility};

std::string pad(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

struct Explained {
  std::string_view name;
  std::string value;
  std::string origin;
};

// What is after a value that is wider than most has a line of its own.
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
    if (row.value.size() > values) result += row.value + "\n" + pad("", names) + "  ";
    result += pad(row.value.size() > values ? "" : row.value, values) + "  " + row.origin + "\n";
  }
  return result;
}

std::string milliseconds_text(std::chrono::milliseconds value) {
  const auto count = value.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

}  // namespace

std::string version_text() {
  return "drun " DRUN_VERSION "\n";
}

std::string help_text(bool all, bool launch) {
  std::string result =
      "usage: drun [flags] PROGRAM [args...]\n"
      "       drun [flags] -m PYTHON_MODULE [args...]\n\n"
      "Starts the workers of a distributed job on this node, together with the drun of\n"
      "every other node: torchrun's flags and environment for any program. A PROGRAM\n"
      "that ends in .py is run by python3 -u; everything after it is the program's.\n\n"
      "  drun --nproc-per-node 4 ./train           one node, four workers\n"
      "  drun --local-nodes 2 ./train              two nodes, tried on this machine\n"
      "  drun --nnodes 2 --rdzv-endpoint HOST:29500 ./train      on each of two nodes\n";
  for (const Group group : kGroups) {
    if (group == Group::Compatibility && !all) continue;
    std::string lines;
    for (const Flag& flag : all_flags()) {
      if (listed(flag, group, launch)) append_flag(lines, flag);
    }
    if (!lines.empty()) result += "\n" + std::string(title_of(group)) + ":\n" + lines;
  }
  result +=
      "\nEvery flag may also be written with underscores, abbreviated as long as it is\n"
      "unique, and set by a variable, which it overrides: --max-restarts is also\n"
      "PET_MAX_RESTARTS.\n";
  return result;
}

std::string explain_text(const Settings& settings, const Options& options) {
  std::vector<Explained> rows;
  for (const Flag& flag : all_flags()) {
    if (flag.readiness != Readiness::Ready || !has_variable(flag) || flag.name == "explain") {
      continue;
    }
    const Setting* setting = settings.find(flag.name);
    const bool toggle = flag.arity == Arity::Switch;
    std::string value = "-";
    if (setting != nullptr) {
      value = toggle ? (setting->value == "0" ? "off" : "on") : shell_quoted(setting->value);
    } else if (toggle) {
      value = "off";
    } else if (!flag.fallback.empty()) {
      value = flag.fallback;
    }
    rows.push_back({flag.name, value, setting == nullptr ? "default" : setting->shown});
  }
  std::string result = columns(rows);
  const RendezvousConf& conf = options.conf;
  result += "\nDecided from these:\n";
  const auto add = [&](const char* name, const std::string& value) {
    result += pad(name, 20) + " " + value + "\n";
  };
  const bool private_store = options.backend == Backend::Standalone || options.endpoint.port == 0;
  add("nodes", options.min_nodes == options.max_nodes ? std::to_string(options.min_nodes)
                                                      : std::to_string(options.min_nodes) + " to " +
                                                            std::to_string(options.max_nodes));
  add("workers per node", std::to_string(options.nproc_per_node));
  add("backend", private_store                      ? "standalone"
                 : options.backend == Backend::C10d ? "c10d"
                                                    : "static");
  add("endpoint", private_store ? "a free port of this machine" : to_string(options.endpoint));
  add("job id", options.fresh_run_id ? "a fresh one" : options.run_id);
  const std::string rank = options.node_rank ? std::to_string(*options.node_rank) : "any";
  add("node rank",
      options.node_rank_is_wish && options.node_rank ? "any, " + rank + " where it is free" : rank);
  add("workers' store", options.worker_store == WorkerStore::Agent ? "agent" : "rank0");
  add("join timeout", milliseconds_text(conf.join_timeout));
  add("last call timeout", milliseconds_text(conf.last_call_timeout));
  add("close timeout", milliseconds_text(conf.close_timeout));
  add("keep alive", milliseconds_text(conf.keep_alive_interval) + " x " +
                        std::to_string(conf.keep_alive_max_attempt));
  return result;
}

}  // namespace drun::launcher
