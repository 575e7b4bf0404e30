#include "base/trimmed.hpp"
#include "launcher/command_line/options_build.hpp"
#include "launcher/command_line/options_conf.hpp"
#include "launcher/command_line/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr std::uint16_t kC10dPort = 29400;
constexpr std::uint16_t kStaticPort = 29500;
constexpr std::chrono::milliseconds kStaticTimeout{900'000};
constexpr std::string_view kDefaultMaster = "127.0.0.1";

enum class Asked { Nothing, C10d, Static };

// The setting unless it is empty: an empty endpoint is none, as in torchrun.
const Setting* filled(const Settings& settings, std::string_view name) {
  const Setting* setting = settings.find(name);
  return setting != nullptr && !setting->value.empty() ? setting : nullptr;
}

Asked asked_backend(const Settings& settings) {
  const Setting* backend = filled(settings, "rdzv-backend");
  if (backend == nullptr) return Asked::Nothing;
  if (backend->value == "etcd" || backend->value == "etcd-v2") {
    refuse(*backend,
           "drun carries its own store and needs no etcd: use c10d, with one of the nodes as "
           "--rdzv-endpoint");
  }
  if (backend->value != "c10d" && backend->value != "static") {
    refuse(
        *backend,
        "expected c10d or static; drun loads no Python plug-ins: use c10d, with one of the nodes "
        "as --rdzv-endpoint");
  }
  return parse_choice(*backend, {"c10d", "static"}) == 0 ? Asked::C10d : Asked::Static;
}

Endpoint checked_endpoint(const Setting& setting, std::uint16_t default_port) {
  const auto parsed = parse_endpoint(trimmed(setting.value), default_port);
  if (!parsed) throw UsageError(setting.shown + " " + parsed.error().what());
  return *parsed;
}

std::optional<std::uint16_t> port_setting(const Settings& settings) {
  const Setting* setting = filled(settings, "master-port");
  if (setting == nullptr) return std::nullopt;
  return static_cast<std::uint16_t>(parse_integer(*setting, 0, 65535));
}

std::string master_address(const Settings& settings) {
  const Setting* setting = filled(settings, "master-addr");
  if (setting == nullptr) return std::string(kDefaultMaster);
  const Endpoint parsed = checked_endpoint(*setting, 0);
  if (parsed.port != 0) refuse(*setting, "expected an address only; the port is --master-port");
  return parsed.host;
}

// A store that only this machine's agents know.
void use_private_store(Options& options) {
  if (options.local_nodes > 0) {
    options.backend = Backend::C10d;
    options.endpoint = {std::string(kDefaultMaster), 0};
  } else {
    options.backend = Backend::Standalone;
    options.endpoint = {};
    options.min_nodes = options.max_nodes = 1;
  }
}

void use_free_port(Options& options) {
  if (options.max_nodes == 1) return use_private_store(options);
  throw UsageError("port 0 means any free port, which the other nodes cannot know; give a number");
}

// MASTER_ADDR:MASTER_PORT is the endpoint, as in torchrun.
void use_static(const Settings& settings, Options& options) {
  if (const Setting* endpoint = filled(settings, "rdzv-endpoint")) {
    options.endpoint = checked_endpoint(*endpoint, options.master_port.value_or(kStaticPort));
  } else {
    options.endpoint = {master_address(settings), options.master_port.value_or(kStaticPort)};
    if (options.max_nodes > 1 && filled(settings, "master-addr") == nullptr) {
      options.notes.push_back("no --master-addr: the nodes meet at " + to_string(options.endpoint) +
                              ", which only this machine can reach");
    }
  }
  if (options.endpoint.port == 0) {
    options.master_port.reset();
    return use_free_port(options);
  }
  options.backend = Backend::Static;
}

void use_c10d(const Setting& endpoint, Options& options) {
  options.endpoint = checked_endpoint(endpoint, kC10dPort);
  if (options.endpoint.port == 0) {
    return use_free_port(options);  // torchrun's documentation starts single nodes so
  }
  options.backend = Backend::C10d;
  // Scripts give both spellings of one port; torchrun's c10d ignores --master-port.
  if (options.master_port == options.endpoint.port) options.master_port.reset();
}

void use_standalone(const Settings& settings, Options& options) {
  const Setting* nodes = settings.find("nnodes");
  if (options.min_nodes > 1 && options.local_nodes == 0 && nodes != nullptr) {
    refuse(
        *nodes,
        "--standalone is one node; drop it, or use --local-nodes to run several on this machine");
  }
  for (const char* name : {"rdzv-endpoint", "rdzv-backend", "master-addr"}) {
    const Setting* setting = filled(settings, name);
    if (setting != nullptr && setting->source == Source::Flag) {
      options.notes.push_back(setting->shown + " has no effect with --standalone");
    }
  }
  use_private_store(options);
}

// The nodes are all of this machine, and meet at a store that only they know.
void use_local_nodes(const Settings& settings, Options& options) {
  const Setting* endpoint = filled(settings, "rdzv-endpoint");
  (void)master_address(settings);
  if (endpoint != nullptr && checked_endpoint(*endpoint, kC10dPort).port == 0) endpoint = nullptr;
  const Setting* backend = filled(settings, "rdzv-backend");
  if (asked_backend(settings) != Asked::Static) backend = nullptr;
  for (const Setting* setting : {endpoint, backend, filled(settings, "master-addr")}) {
    if (setting != nullptr && setting->source == Source::Flag)
      options.notes.push_back(setting->shown + " has no effect with --local-nodes");
  }
  use_private_store(options);
}

// Where c10d is asked for by name, --node-rank is a wish: torchrun does not look at it then, and
// batch scripts give all nodes the rank of the first one.
void check_rank(const Settings& settings, const GivenConf& conf, Options& options) {
  const Setting* setting = filled(settings, "node-rank");
  if (setting != nullptr) options.node_rank = parse_integer(*setting, 0, 1'000'000);
  // A job of one node alone: the rank may be that of a pod among others.
  if (settings.on("standalone") && options.local_nodes == 0) {
    if (options.node_rank.value_or(0) != 0 && setting->source == Source::Flag) {
      options.notes.push_back(setting->shown + " has no effect with --standalone");
    }
    return options.node_rank.reset();
  }
  options.node_rank_is_wish = asked_backend(settings) == Asked::C10d;
  if (options.node_rank_is_wish) {
    if (!options.node_rank) options.node_rank = conf.rank;
    if (options.node_rank && *options.node_rank >= options.max_nodes) options.node_rank.reset();
  }
  if (conf.rank && !options.node_rank_is_wish) {
    if (options.node_rank && *options.node_rank != *conf.rank) {
      throw UsageError(setting->shown + " " + quote(setting->value) +
                       ": --rdzv-conf says rank=" + std::to_string(*conf.rank));
    }
    options.node_rank = conf.rank;
  }
  if (!options.node_rank) return;
  const std::string shown = setting != nullptr ? setting->shown : "--rdzv-conf rank";
  if (options.local_nodes > 0) {
    throw UsageError(shown + ": names one node, and --local-nodes starts " +
                     std::to_string(options.local_nodes));
  }
  if (*options.node_rank >= options.max_nodes) {
    throw UsageError(shown + " " + quote(std::to_string(*options.node_rank)) + ": with " +
                     std::to_string(options.max_nodes) +
                     (options.max_nodes == 1
                          ? " node the only rank is 0"
                          : " nodes the ranks are 0 to " + std::to_string(options.max_nodes - 1)));
  }
}

}  // namespace

void resolve_rendezvous(const Given& given, Options& options) {
  const Settings& settings = given.settings;
  const Asked asked = asked_backend(settings);
  const Setting* endpoint = filled(settings, "rdzv-endpoint");
  const bool has_master =
      filled(settings, "master-addr") != nullptr || filled(settings, "master-port") != nullptr;
  GivenConf conf;
  if (const Setting* setting = settings.find("rdzv-conf")) conf = parse_conf(*setting);
  options.conf = conf.conf;
  options.master_port = port_setting(settings);
  // torchrun takes one node without a port for a private job, whatever its --master-addr says.
  const bool ranked = options.max_nodes > 1 && filled(settings, "node-rank") != nullptr;
  const bool master = (has_master && (options.master_port || options.max_nodes > 1)) || ranked;
  const bool is_static = asked == Asked::Static
                             ? endpoint != nullptr || master
                             : asked == Asked::Nothing && endpoint == nullptr && master;

  if (settings.on("standalone")) {
    use_standalone(settings, options);
  } else if (options.local_nodes > 0) {
    use_local_nodes(settings, options);
  } else if (is_static) {
    use_static(settings, options);
  } else if (endpoint != nullptr) {
    use_c10d(*endpoint, options);
  } else if (options.max_nodes == 1) {
    use_private_store(options);
  } else {
    throw UsageError(
        "several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on every node, or "
        "--node-rank, --master-addr and --master-port, or try them on this machine with "
        "--local-nodes " +
        std::to_string(options.min_nodes));
  }

  check_rank(settings, conf, options);
  if (options.backend == Backend::Static && !conf.join_timeout) {
    options.conf.join_timeout = conf.timeout.value_or(kStaticTimeout);
  }
  const bool private_store = options.backend == Backend::Standalone || options.endpoint.port == 0;
  const Setting* id = filled(settings, "rdzv-id");
  if (id != nullptr) {
    options.run_id = id->value;
  } else {
    const auto& fresh_id = given.surroundings.fresh_id;
    options.fresh_run_id = private_store && fresh_id;
    options.run_id = options.fresh_run_id ? fresh_id() : "none";
  }
}

}  // namespace drun::launcher
