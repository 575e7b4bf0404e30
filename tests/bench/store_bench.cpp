// Measures stores against each other and against the least that a server can do on this machine,
// in one run, and prints one table. Results depend on the machine and on what else runs on it: look
// at the ratios.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/limit_server.hpp"
#include "bench/load.hpp"
#include "bench/relay_server.hpp"
#include "bench/server_process.hpp"
#include "store/protocol/tcpstore_codec.hpp"
#include "support/places.hpp"

namespace drun::bench {
namespace {

using store::TcpStoreVersion;
using store::tcpstore::encode;
using store::tcpstore::Op;

constexpr const char* kHelp = R"(Usage: store_bench [options]

Runs the same loads against several servers and prints one table.

  --servers LIST       of limit,copy,drun,torch,relay,relay-tls (default: limit,drun,torch, as
                       far as they are there); copy is the limit of a server that keeps what it
                       gets; the relays have a store of drun's behind them, in the same process
  --loads LIST         of set+get,get,add,check,wait,get-1k,get-64k,set+get-1k,set+get-64k,
                       get-p16,add-p16,storm (default: all)
  --connections LIST   default 64,1000; get-64k, set+get-64k and the -p16 loads use the first
  --storms LIST        connections of the storms, default 1000,5000,15000
  --seconds S          of each measurement, default 2
  --repeat N           measure each N times (storms at most 3), in turns, and show the median;
                       default 3. "of limit" is the median of each turn's ratio, so that what
                       else runs on the machine meets all servers alike
  --pin                the server on CPU 0, the load on CPU 1
  --drun-store PATH    default: beside this program's build
  --python PATH        with torch 1.13, default /usr/bin/python3
)";

constexpr const char* kTorchServer =
    "import signal, torch.distributed as d\n"
    "s = d.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)\n"
    "print(s.port, flush=True)\n"
    "signal.pause()\n";

constexpr std::size_t kMostStorms = 3;  // a storm of 15,000 takes torch half a minute

struct Settings {
  std::vector<std::string> servers{"limit", "drun", "torch"};
  std::vector<std::string> loads{"set+get",     "get",     "add",     "check",
                                 "wait",        "get-1k",  "get-64k", "set+get-1k",
                                 "set+get-64k", "get-p16", "add-p16", "storm"};
  std::vector<std::size_t> connections{64, 1000};
  std::vector<std::size_t> storms{1000, 5000, 15000};
  double seconds = 2;
  std::size_t repeat = 3;
  bool pin = false;
  std::string drun_store = places::program("drun-store");
  std::string python = "/usr/bin/python3";
};

[[noreturn]] void usage_error(const std::string& text) {
  std::fprintf(stderr, "store_bench: %s\n", text.c_str());
  std::exit(2);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    parts.push_back(part);
  return parts;
}

std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> result;
  for (const std::string& part : split(text)) {
    const long value = std::atol(part.c_str());
    if (value <= 0) usage_error("'" + part + "' is not a number of connections");
    result.push_back(static_cast<std::size_t>(value));
  }
  return result;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (option == "--pin") {
      settings.pin = true;
      continue;
    }
    if (++i == argc) usage_error("'" + option + "' is unknown or needs a value; see --help");
    const std::string value = argv[i];
    if (option == "--servers") {
      settings.servers = split(value);
    } else if (option == "--loads") {
      settings.loads = split(value);
    } else if (option == "--connections") {
      settings.connections = numbers(value);
    } else if (option == "--storms") {
      settings.storms = numbers(value);
    } else if (option == "--seconds") {
      settings.seconds = std::atof(value.c_str());
    } else if (option == "--repeat") {
      settings.repeat = numbers(value).at(0);
    } else if (option == "--drun-store") {
      settings.drun_store = value;
    } else if (option == "--python") {
      settings.python = value;
    } else {
      usage_error("'" + option + "' is unknown; see --help");
    }
  }
  if (settings.seconds <= 0) usage_error("--seconds must be above 0");
  return settings;
}

// ---- the loads ----

std::string key_of(std::size_t number) {
  char key[32];
  std::snprintf(key, sizeof key, "/bench/key/%06zu", number);
  return key;
}

std::string length_of(std::size_t size) {
  std::string bytes;
  store::append(bytes, std::uint64_t{size});
  return bytes;
}

Workload set_get(std::string name, std::size_t connections, std::size_t value_bytes) {
  Workload w;
  w.name = std::move(name);
  w.connections = connections;
  w.operations = 2;
  w.request = [value_bytes](std::size_t number, TcpStoreVersion version) {
    std::string bytes;
    const std::string key = key_of(number);
    const std::string value(value_bytes, 'v');
    encode(bytes, version, {.op = Op::Set, .key = key, .value = value});
    encode(bytes, version, {.op = Op::Get, .key = key});
    return bytes;
  };
  w.reply_bytes = 8 + value_bytes;
  w.reply_begins = length_of(value_bytes) + "v";
  return w;
}

Workload get(std::string name, std::size_t connections, std::size_t value_bytes,
             std::size_t depth) {
  Workload w;
  w.name = std::move(name);
  w.connections = connections;
  w.depth = depth;
  const std::string key = "/bench/value/" + std::to_string(value_bytes);
  w.request = [key](std::size_t, TcpStoreVersion version) {
    std::string bytes;
    encode(bytes, version, {.op = Op::Get, .key = key});
    return bytes;
  };
  w.prepare = [key, value_bytes](TcpStoreVersion version) {
    std::string bytes;
    const std::string value(value_bytes, 'v');
    encode(bytes, version, {.op = Op::Set, .key = key, .value = value});
    return bytes;
  };
  w.reply_bytes = 8 + value_bytes;
  w.reply_begins = length_of(value_bytes) + "v";
  return w;
}

Workload add(std::string name, std::size_t connections, std::size_t depth) {
  Workload w;
  w.name = std::move(name);
  w.connections = connections;
  w.depth = depth;
  w.request = [](std::size_t, TcpStoreVersion version) {
    std::string bytes;
    encode(bytes, version, {.op = Op::Add, .key = "/bench/counter", .number = 1});
    return bytes;
  };
  w.reply_bytes = 8;
  return w;
}

Workload check(std::size_t connections) {
  Workload w;
  w.name = "check";
  w.connections = connections;
  w.request = [](std::size_t, TcpStoreVersion version) {
    std::string bytes;
    encode(bytes, version, {.op = Op::Check, .keys = {"/bench/none"}});
    return bytes;
  };
  w.reply_bytes = 1;
  w.reply_begins = "\x01";  // not there
  return w;
}

struct Load {
  std::string name;
  std::size_t connections = 0;
  bool storm = false;
  std::function<Measurement(const ServerProcess&, LimitSizes&)> run;
};

std::vector<Load> plan(const Settings& settings) {
  std::vector<Load> loads;
  const auto time =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(settings.seconds));
  const auto add_requests = [&](const Workload& workload) {
    loads.push_back({workload.name, workload.connections, false,
                     [=](const ServerProcess& server, LimitSizes& sizes) {
                       return run_requests(server, sizes, workload, time);
                     }});
  };
  for (const std::string& name : settings.loads) {
    if (name == "storm") {
      for (const std::size_t count : settings.storms) {
        loads.push_back({name, count, true, [=](const ServerProcess& server, LimitSizes& sizes) {
                           return run_storm(server, sizes, count, std::chrono::seconds(60));
                         }});
      }
      continue;
    }
    const bool first_only = name.ends_with("64k") || name.ends_with("p16");
    for (const std::size_t count : settings.connections) {
      if (first_only && count != settings.connections.front()) continue;
      if (name == "set+get") {
        add_requests(set_get(name, count, 16));
      } else if (name == "set+get-1k") {
        add_requests(set_get(name, count, 1024));
      } else if (name == "set+get-64k") {
        add_requests(set_get(name, count, 65536));
      } else if (name == "get") {
        add_requests(get(name, count, 16, 1));
      } else if (name == "get-1k") {
        add_requests(get(name, count, 1024, 1));
      } else if (name == "get-64k") {
        add_requests(get(name, count, 65536, 1));
      } else if (name == "get-p16") {
        add_requests(get(name, count, 16, 16));
      } else if (name == "add") {
        add_requests(add(name, count, 1));
      } else if (name == "add-p16") {
        add_requests(add(name, count, 16));
      } else if (name == "check") {
        add_requests(check(count));
      } else if (name == "wait") {
        loads.push_back({name, count, false, [=](const ServerProcess& server, LimitSizes& sizes) {
                           return run_waits(server, sizes, count, time);
                         }});
      } else {
        usage_error("there is no load '" + name + "'; see --help");
      }
    }
  }
  return loads;
}

// ---- the servers ----

std::unique_ptr<ServerProcess> start_unpinned(const std::string& name, const Settings& settings,
                                              const LimitSizes& sizes) {
  if (const std::optional<LimitKind> kind = limit_kind(name)) {
    return std::make_unique<ServerProcess>(
        name, TcpStoreVersion::Torch2_2,
        [&sizes, kind](int out) { serve_limit(sizes, *kind, out); });
  }
  if (name == "drun") {
    if (!std::filesystem::exists(settings.drun_store)) return nullptr;
    return std::make_unique<ServerProcess>(
        name, TcpStoreVersion::Torch2_2,
        std::vector<std::string>{settings.drun_store, "--bind", "127.0.0.1", "--port", "0"});
  }
  if (name == "relay" || name == "relay-tls")
    return std::make_unique<ServerProcess>(name, TcpStoreVersion::Torch2_2, [&name](int out) {
      serve_relayed(name == "relay-tls", out);
    });
  if (name == "torch") {
    const std::string probe = settings.python +
                              " -c 'import importlib.util as u, sys; "
                              "sys.exit(u.find_spec(\"torch\") is None)' 2>/dev/null";
    if (std::system(probe.c_str()) != 0) return nullptr;
    return std::make_unique<ServerProcess>(
        name, TcpStoreVersion::Torch1_13,
        std::vector<std::string>{settings.python, "-c", kTorchServer});
  }
  usage_error("there is no server '" + name + "'; see --help");
}

// Null: it is not on this machine.
std::unique_ptr<ServerProcess> start(const std::string& name, const Settings& settings,
                                     const LimitSizes& sizes) {
  auto server = start_unpinned(name, settings, sizes);
  if (server && settings.pin) server->pin(0);
  return server;
}

// ---- the table ----

Measurement median(std::vector<Measurement> runs) {
  std::erase_if(runs, [](const Measurement& run) { return !run.ok; });
  std::sort(runs.begin(), runs.end(), [](const Measurement& a, const Measurement& b) {
    return a.cpu_per_operation() < b.cpu_per_operation();
  });
  return runs[runs.size() / 2];
}

// The median over the turns of value(run) / value(the limit's run of the same turn).
template <typename Value>
std::string ratio(const std::vector<Measurement>& runs, const std::vector<Measurement>& limits,
                  const Value& value) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(runs.size(), limits.size()); ++i) {
    if (runs[i].ok && limits[i].ok && value(limits[i]) > 0) {
      ratios.push_back(value(runs[i]) / value(limits[i]));
    }
  }
  if (ratios.empty()) return "-";
  std::sort(ratios.begin(), ratios.end());
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratios[ratios.size() / 2]);
  return text;
}

std::string microseconds(std::uint64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", static_cast<double>(nanoseconds) / 1e3);
  return text;
}

void print_heading() {
  std::printf(
      "| load | connections | server | ops/s | of limit | p50 us | p99 us | max us | "
      "server CPU us/op | of limit | memory/connection | barrier ms |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
}

void print_row(const Load& load, const std::string& server, const std::vector<Measurement>& runs,
               const std::vector<Measurement>& limits) {
  const Measurement m = median(runs);
  std::string memory;
  std::string barrier;
  if (load.storm) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f", m.memory_per_connection);
    memory = text;
    std::snprintf(text, sizeof text, "%.1f", m.barrier_seconds * 1e3);
    barrier = text;
  }
  std::printf(
      "| %s | %zu | %s | %.0f | %s | %s | %s | %s | %.2f | %s | %s | %s |\n", load.name.c_str(),
      load.connections, server.c_str(), m.rate(),
      ratio(runs, limits, [](const Measurement& run) { return run.rate(); }).c_str(),
      microseconds(m.latency.quantile(0.5)).c_str(), microseconds(m.latency.quantile(0.99)).c_str(),
      microseconds(m.latency.max()).c_str(), m.cpu_per_operation(),
      ratio(runs, limits, [](const Measurement& run) { return run.cpu_per_operation(); }).c_str(),
      memory.c_str(), barrier.c_str());
  std::fflush(stdout);
}

void pin_this(std::size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

int run(const Settings& settings) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // inherited by the servers
  ::setrlimit(RLIMIT_NOFILE, &files);

  const std::vector<Load> loads = plan(settings);
  LimitSizes& sizes = shared_limit_sizes();
  std::vector<std::unique_ptr<ServerProcess>> servers;
  for (const std::string& name : settings.servers) {
    auto server = start(name, settings, sizes);
    if (server == nullptr) {
      std::fprintf(stderr, "store_bench: leaving out '%s': it is not on this machine\n",
                   name.c_str());
      continue;
    }
    servers.push_back(std::move(server));
  }
  if (settings.pin) pin_this(1);

  bool good = true;
  print_heading();
  for (const Load& load : loads) {
    std::map<std::string, std::vector<Measurement>> runs;
    std::map<std::string, std::string> problems;
    const std::size_t turns = load.storm ? std::min(settings.repeat, kMostStorms) : settings.repeat;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      for (std::size_t i = 0; i < servers.size(); ++i) {
        const auto& server = servers[(turn + i) % servers.size()];
        if (problems.contains(server->name())) continue;
        // Memory that a server has used once shows no growth when it is used again.
        const auto fresh = load.storm ? start(server->name(), settings, sizes) : nullptr;
        Measurement m = load.run(fresh ? *fresh : *server, sizes);
        if (!m.ok) problems[server->name()] = m.problem;
        runs[server->name()].push_back(std::move(m));
      }
    }
    for (const auto& server : servers) {
      if (problems.contains(server->name())) {
        std::printf("| %s | %zu | %s | failed: %s |\n", load.name.c_str(), load.connections,
                    server->name().c_str(), problems[server->name()].c_str());
        good = good && server->name() == "torch";  // torch's failures are results too
        continue;
      }
      print_row(load, server->name(), runs[server->name()], runs["limit"]);
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace drun::bench

int main(int argc, char** argv) {
  return drun::bench::run(drun::bench::parse(argc, argv));
}
