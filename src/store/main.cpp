// drun-store: the store as a program of its own.
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "drun/base/endpoint.hpp"
#include "drun/base/log.hpp"
#include "drun/store/server.hpp"
#include "store/arguments.hpp"

namespace drun::store {
namespace {

constexpr int kUsage = 2;
constexpr int kFailed = 125;
constexpr std::uint16_t kDefaultPort = 29400;
constexpr std::size_t kLongestInterval = 24UL * 3600 * 1000;  // milliseconds

constexpr const char* kHelp = R"(Usage: drun-store [options]

A key-value store for drun, for torchrun (--rdzv-conf is_host=0) and for every
client of PyTorch's TCPStore from torch 1.13 on. Prints the endpoint that it
has bound as one line, and serves until SIGTERM or SIGINT.

  --bind ADDRESS           numeric address or name of an interface of this
                           machine; default: all of them, IPv4 and IPv6
  --port PORT              default 29400; 0: any free port

  --snapshot FILE          keep keys and sessions in FILE: loaded at the start if
                           it is there, replaced as they change and at the end
  --snapshot-interval MS   at most so often; default 1000 milliseconds

  --max-key SIZE           of a key, default 8K
  --max-value SIZE         of a value, default 64M
  --max-keys N             in one request, default 131072
  --max-connections N      default 1000000; the limit of open files, which is
                           raised as far as the system allows, comes first
  --max-total SIZE         keys and values held together, default 4G
  --max-unread SIZE        replies that a client has not read, default 256M;
                           then its connection is dropped
  --dialect-b              clients that open as torch 1.13 to 2.1 do are 2.1

  --log-level LEVEL        error, warning (default), info, debug or trace
  --help, --version

SIZE: bytes, or with K, M or G (powers of 1024). Exit codes: 0 after SIGTERM or
SIGINT, 2 usage, 125 it cannot serve (the port is in use, for example).
)";

struct Settings {
  Endpoint endpoint{"", kDefaultPort};
  ServerOptions server;
  std::string snapshot;
  std::chrono::milliseconds snapshot_interval{1000};
  log::Level level = log::Level::Warning;
  bool help = false;
  bool version = false;
};

log::Level parse_level(const std::string& text) {
  if (text == "error") return log::Level::Error;
  if (text == "warning") return log::Level::Warning;
  if (text == "info") return log::Level::Info;
  if (text == "debug") return log::Level::Debug;
  if (text == "trace") return log::Level::Trace;
  throw UsageError("--log-level '" + text + "': expected error, warning, info, debug or trace");
}

// A name, or a numeric address with or without brackets and %scope; no port.
std::string parse_bind(const std::string& text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  const std::string host = brackets ? text.substr(1, text.size() - 2) : text;
  const std::string plain = host.substr(0, host.find('%'));
  const auto parsed = parse_endpoint(plain, 0);
  if (!parsed || parsed->host != plain) {
    throw UsageError("--bind '" + text + "': expected an address without a port");
  }
  return host;
}

Settings parse(Arguments arguments) {
  Settings settings;
  Limits& limits = settings.server.limits;
  while (!arguments.empty()) {
    if (const auto bind = arguments.take_value("--bind")) {
      settings.endpoint.host = parse_bind(*bind);
    } else if (const auto port = arguments.take_value("--port")) {
      const auto number = parse_port(*port);
      if (!number) throw UsageError("--port " + number.error().what());
      settings.endpoint.port = *number;
    } else if (const auto file = arguments.take_value("--snapshot")) {
      settings.snapshot = *file;
    } else if (const auto interval = arguments.take_value("--snapshot-interval")) {
      const std::size_t milliseconds = parse_count("--snapshot-interval", *interval);
      settings.snapshot_interval =
          std::chrono::milliseconds(std::min(milliseconds, kLongestInterval));
    } else if (const auto key = arguments.take_value("--max-key")) {
      limits.key_bytes = parse_size("--max-key", *key);
    } else if (const auto value = arguments.take_value("--max-value")) {
      limits.value_bytes = parse_size("--max-value", *value);
    } else if (const auto keys = arguments.take_value("--max-keys")) {
      limits.keys_per_request = parse_count("--max-keys", *keys);
    } else if (const auto connections = arguments.take_value("--max-connections")) {
      limits.connections = parse_count("--max-connections", *connections);
    } else if (const auto total = arguments.take_value("--max-total")) {
      limits.total_bytes = parse_size("--max-total", *total);
    } else if (const auto unread = arguments.take_value("--max-unread")) {
      limits.unread_bytes = parse_size("--max-unread", *unread);
    } else if (const auto level = arguments.take_value("--log-level")) {
      settings.level = parse_level(*level);
    } else if (arguments.take_switch("--dialect-b")) {
      settings.server.old_clients_are_2_1 = true;
    } else if (arguments.take_switch("--help")) {
      settings.help = true;
    } else if (arguments.take_switch("--version")) {
      settings.version = true;
    } else if (const auto word = arguments.take_word()) {
      throw UsageError("'" + *word + "' is too much; see --help");
    }
  }
  return settings;
}

// SIGTERM and SIGINT, blocked in all threads so that sigwait() gets them. A peer that has gone is
// no reason to end.
sigset_t end_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int serve(const Settings& settings) {
  const sigset_t signals = end_signals();
  raise_descriptor_limit();
  Server server(settings.server);
  if (!settings.snapshot.empty()) {
    const Status loaded = server.use_snapshot(settings.snapshot, settings.snapshot_interval);
    if (!loaded) {
      log::error(loaded.error().what());
      return kFailed;
    }
  }
  const auto bound = server.add_listener(settings.endpoint, Table::Job);
  if (!bound) {
    log::error(bound.error().what());
    return kFailed;
  }
  std::thread serving([&server] { server.run(); });
  std::printf("%s\n", to_string(*bound).c_str());
  std::fflush(stdout);
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  log::info(std::string("ending on ") + (signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  server.stop();
  serving.join();
  return server.last_snapshot() ? 0 : kFailed;
}

int run(int argc, char** argv) {
  log::configure("drun-store", log::Level::Warning);
  try {
    const Settings settings = parse(Arguments(argc, argv));
    if (settings.help) {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (settings.version) {
      std::puts("drun-store " DRUN_VERSION);
      return 0;
    }
    log::configure("drun-store", settings.level);
    return serve(settings);
  } catch (const UsageError& error) {
    log::error(error.what());
    return kUsage;
  } catch (const std::exception& error) {
    log::error(error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace drun::store

int main(int argc, char** argv) {
  return drun::store::run(argc, argv);
}
