#include "store/program/store_options.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/command_line.hpp"

namespace drun::store {
namespace {

constexpr std::size_t kLongestInterval = 24UL * 3600 * 1000;  // milliseconds

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

std::uint16_t parse_port_option(const std::string& text) {
  const auto port = parse_port(text);
  if (!port) throw UsageError("--port " + port.error().what());
  return *port;
}

std::chrono::milliseconds parse_interval(const std::string& text) {
  return std::chrono::milliseconds(
      std::min(parse_count("--snapshot-interval", text), kLongestInterval));
}

// The options of one heading.
class Group {
 public:
  Group(CLI::App& app, const char* name) : app_(app), name_(name) {}

  Group& option(const char* option, const char* type, const char* text,
                const std::function<void(const std::string&)>& take) {
    app_.add_option_function<std::string>(option, take, text)->type_name(type)->group(name_);
    return *this;
  }
  Group& size(const char* option, const char* text, std::size_t& limit) {
    return this->option(option, "SIZE", text, [option, &limit](const std::string& value) {
      limit = parse_size(option, value);
    });
  }
  Group& count(const char* option, const char* text, std::size_t& limit) {
    return this->option(option, "N", text, [option, &limit](const std::string& value) {
      limit = parse_count(option, value);
    });
  }
  Group& flag(const char* option, const char* text, bool& value) {
    app_.add_flag(option, value, text)->group(name_);
    return *this;
  }

 private:
  CLI::App& app_;
  const char* name_;
};

void add_options(CLI::App& app, StoreSettings& settings) {
  Group(app, "Where it listens")
      .option("--bind", "ADDRESS",
              "numeric address or name of an interface of this machine; default: all of them, IPv4 "
              "and IPv6",
              [&](const std::string& text) { settings.endpoint.host = parse_bind(text); })
      .option("--port", "PORT", "default 29400; 0: any free port",
              [&](const std::string& text) { settings.endpoint.port = parse_port_option(text); });
  Group(app, "What it keeps")
      .option(
          "--snapshot", "FILE",
          "keep keys and sessions in FILE: loaded at the start if it is there, replaced as they "
          "change and at the end",
          [&](const std::string& text) { settings.snapshot = text; })
      .option("--snapshot-interval", "MS", "at most so often; default 1000 milliseconds",
              [&](const std::string& text) { settings.snapshot_interval = parse_interval(text); });
  Limits& limits = settings.server.limits;
  Group(app, "Limits")
      .size("--max-key", "of a key, default 8K", limits.key_bytes)
      .size("--max-value", "of a value, default 64M", limits.value_bytes)
      .count("--max-keys", "in one request, default 131072", limits.keys_per_request)
      .count("--max-connections",
             "default 1000000; the limit of open files, which is raised as far as the system "
             "allows, comes first",
             limits.connections)
      .size("--max-total", "keys and values held together, default 4G", limits.total_bytes)
      .size("--max-unread",
            "replies that a client has not read, default 256M, or more if a value may be longer; "
            "then its connection is dropped",
            limits.unread_bytes);
  Group(app, "Other")
      .flag("--dialect-b", "clients that open as torch 1.13 to 2.1 do are 2.1",
            settings.server.old_clients_are_2_1)
      .option("--log-level", "LEVEL", "error, warning (default), info, debug or trace",
              [&](const std::string& text) { settings.level = parse_level(text); });
}

// A value that is stored must fit into a request and into a reply. What was not given makes room.
void check_limits(const CLI::App& app, Limits& limits) {
  constexpr std::size_t kLengths = 64;  // opcode and lengths of a message
  const std::size_t keys = 2 * limits.key_bytes + kLengths;
  const auto too_much = [&](const char* option, std::size_t limit, const char* why) {
    const char* advice = app.count("--max-value") > 0 ? "" : "; give --max-value as well";
    throw UsageError(std::string(option) + " " + std::to_string(limit) + " is too little for " +
                     "values of " + std::to_string(limits.value_bytes) +
                     " bytes (--max-value): " + why + advice);
  };
  constexpr std::size_t kLongestValue = std::size_t{1} << 40;
  if (limits.value_bytes > kLongestValue || limits.key_bytes > kLongestValue)
    throw UsageError("--max-key and --max-value: at most 1024G");
  const std::size_t reply = limits.value_bytes + keys;
  if (limits.unread_bytes < reply) {
    if (app.count("--max-unread") > 0)
      too_much("--max-unread", limits.unread_bytes, "a client could store one and never read it");
    limits.unread_bytes = reply;
  }
  if (limits.total_bytes < limits.value_bytes && app.count("--max-total") > 0 &&
      app.count("--max-value") > 0)
    too_much("--max-total", limits.total_bytes, "the store could not hold one");
  // COMPARE_SET has two values.
  limits.request_bytes = std::max(limits.request_bytes, 2 * limits.value_bytes + keys);
}

}  // namespace

std::optional<StoreSettings> parse_store_options(int argc, char** argv) {
  CLI::App app(
      "A key-value store for drun, for torchrun (--rdzv-conf is_host=0) and for every\n"
      "client of PyTorch's TCPStore from torch 1.13 on. Prints the endpoint that it\n"
      "has bound as one line, and serves until SIGTERM or SIGINT.",
      "drun-store");
  app.footer(
      "SIZE: bytes, or with K, M or G (powers of 1024). Exit codes: 0 after SIGTERM or\n"
      "SIGINT, 2 usage, 125 it cannot serve (the port is in use, for example).");
  prepare(app);
  StoreSettings settings;
  add_options(app, settings);
  const auto words = parse_command_line(app, argc, argv);
  if (!words) return std::nullopt;
  if (!words->empty()) throw UsageError("'" + words->front() + "' is too much; see --help");
  check_limits(app, settings.server.limits);
  return settings;
}

}  // namespace drun::store
