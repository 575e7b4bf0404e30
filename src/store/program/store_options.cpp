#include "store/program/store_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/printable.hpp"
#include "cli/answer.hpp"
#include "cli/parse.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace drun::store {
namespace {

using cli::Flag;
using cli::Setting;

constexpr std::chrono::milliseconds kLongestInterval = std::chrono::hours(24);

constexpr auto kOwn = cli::Origin::Own;
constexpr std::string_view kListening = "Where it listens";
constexpr std::string_view kKeeping = "What it keeps";
constexpr std::string_view kLimits = "Limits";
constexpr std::string_view kOther = "Other";

// clang-format off
constexpr std::array kFlags{
    Flag{"bind", 0, "ADDRESS", "", kOwn, kListening, "",
         "address or name of this machine to listen on; default: all of them, IPv4 and IPv6"},
    Flag{"port", 0, "PORT", "29400", kOwn, kListening, "",
         "0: any free port"},

    Flag{"token-file", 0, "FILE", "", kOwn, kListening, "FILE",
         "only who has the token in this file, or in DRUN_TOKEN, is served, over TLS"},
    Flag{"tls-cert", 0, "FILE", "", kOwn, kListening, "FILE",
         "instead of a token: a certificate in PEM, with its chain; only who has one of the same authorities is served"},
    Flag{"tls-key", 0, "FILE", "", kOwn, kListening, "FILE",
         "the key of --tls-cert"},
    Flag{"tls-ca", 0, "FILE", "", kOwn, kListening, "FILE",
         "the authorities whose certificates are trusted, in PEM"},

    Flag{"snapshot", 0, "FILE", "", kOwn, kKeeping, "FILE",
         "keep keys and sessions in FILE: loaded at the start if it is there, replaced as they change and at the end"},
    Flag{"snapshot-interval", 0, "TIME", "1s", kOwn, kKeeping, "",
         "the shortest time between two snapshots, as in 500ms; a plain number is in milliseconds"},
    Flag{"forget-ended", 0, "TIME", "1h", kOwn, kKeeping, "",
         "how long to remember a job of drun's after its end, as in 30s or 1h30m; 0: for ever"},

    Flag{"max-key", 0, "SIZE", "8K", kOwn, kLimits, "",
         "the longest key"},
    Flag{"max-value", 0, "SIZE", "64M", kOwn, kLimits, "",
         "the longest value"},
    Flag{"max-keys", 0, "N", "131072", kOwn, kLimits, "",
         "the most keys in one request"},
    Flag{"max-connections", 0, "N", "1000000", kOwn, kLimits, "",
         "the most clients; the system's limit of open files usually comes first"},
    Flag{"max-total", 0, "SIZE", "4G", kOwn, kLimits, "",
         "the most bytes of keys and values together"},
    Flag{"max-job", 0, "SIZE", "no limit", kOwn, kLimits, "",
         "the most bytes that one of drun's jobs may make it hold of that, and all other keys together"},
    Flag{"max-unread", 0, "SIZE", "256M", kOwn, kLimits, "",
         "the most bytes of replies that a client has not read, before it is dropped; more if --max-value needs it"},

    Flag{"legacy-clients", 0, "VERSION", "", kOwn, kOther, "2.1",
         "2.1: take all clients that open as torch 1.13 to 2.1 do for 2.1; default: told apart"},
    Flag{"log-level", 0, "LEVEL", "warning", kOwn, kOther, "error warning info",
         "error, warning or info"},
    cli::help_flag(kOther),
    cli::version_flag(kOther),
    cli::completion_flag(kOther),
    cli::manual_flag(kOther),
};
// clang-format on

constexpr std::string_view kAbout =
    "A key-value store for drun, for torchrun (--rdzv-conf is_host=0) and for every\n"
    "client of PyTorch's TCPStore from torch 1.13 on. Prints the endpoint that it\n"
    "has bound as one line, and serves until SIGTERM or SIGINT.\n";
constexpr std::string_view kNotes =
    "SIZE: bytes, or with K, M, G or T (powers of 1024). Exit codes: 0 after SIGTERM\n"
    "or SIGINT, 2 usage, 125 it cannot serve (the port is in use, for example).\n";

constexpr cli::Program kProgram{
    .name = "drun-store",
    .purpose = "a key-value store for drun, torchrun and PyTorch's TCPStore",
    .usage = "drun-store [flags]\n",
    .about = kAbout,
    .notes = kNotes,
    .flags = kFlags,
};

// A name, or a numeric address with or without brackets and %scope; no port.
std::string parse_bind(const Setting& setting) {
  const std::string& text = setting.value;
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  const std::string host = brackets ? text.substr(1, text.size() - 2) : text;
  const std::string plain = host.substr(0, host.find('%'));
  const auto parsed = parse_endpoint(plain, 0);
  if (!parsed || parsed->host != plain) refuse(setting, "expected an address without a port");
  return host;
}

std::uint16_t parse_port_flag(const Setting& setting) {
  const auto port = parse_port(setting.value);
  if (!port) throw cli::UsageError(setting.shown + " " + port.error().what());
  return *port;
}

log::Level parse_level(const Setting& setting) {
  using enum log::Level;
  constexpr std::array kLevels{Error, Warning, Info};
  return kLevels.at(parse_choice(setting));
}

std::chrono::milliseconds parse_interval(const Setting& setting) {
  constexpr std::chrono::milliseconds kBare{1};  // what the flag took before it had units
  return std::min(cli::parse_duration(setting, false, kBare), kLongestInterval);
}

std::size_t parse_count(const Setting& setting) {
  return static_cast<std::size_t>(cli::parse_integer<std::int64_t>(setting, 1));
}

void read_limits(const cli::GivenFlags& flags, Limits& limits) {
  const auto size = [&](std::string_view name, std::size_t& limit) {
    if (const Setting* setting = flags.find(name)) limit = parse_size(*setting);
  };
  const auto count = [&](std::string_view name, std::size_t& limit) {
    if (const Setting* setting = flags.find(name)) limit = parse_count(*setting);
  };
  size("max-key", limits.key_bytes);
  size("max-value", limits.value_bytes);
  count("max-keys", limits.keys_per_request);
  count("max-connections", limits.connections);
  size("max-total", limits.total_bytes);
  size("max-job", limits.job_bytes);
  size("max-unread", limits.unread_bytes);
}

// A value that is stored must fit into a request and into a reply. What was not given makes room.
void check_limits(const cli::GivenFlags& flags, Limits& limits) {
  constexpr std::size_t kLengths = 64;  // opcode and lengths of a message
  const bool longest_given = flags.find("max-value") != nullptr;
  const std::size_t keys = 2 * limits.key_bytes + kLengths;
  const auto too_much = [&](const char* flag, std::size_t limit, const char* why) {
    const char* advice = longest_given ? "" : "; give --max-value as well";
    throw cli::UsageError(std::string(flag) + " " + std::to_string(limit) + " is too little for " +
                          "values of " + std::to_string(limits.value_bytes) +
                          " bytes (--max-value): " + why + advice);
  };
  constexpr std::size_t kLongestValue = std::size_t{1} << 40;
  if (limits.value_bytes > kLongestValue || limits.key_bytes > kLongestValue)
    throw cli::UsageError("--max-key and --max-value: at most 1024G");
  const std::size_t reply = limits.value_bytes + keys;
  if (limits.unread_bytes < reply) {
    if (flags.find("max-unread") != nullptr)
      too_much("--max-unread", limits.unread_bytes, "a client could store one and never read it");
    limits.unread_bytes = reply;
  }
  if (limits.total_bytes < limits.value_bytes && flags.find("max-total") != nullptr &&
      longest_given)
    too_much("--max-total", limits.total_bytes, "the store could not hold one");
  limits.reserved_bytes = limits.total_bytes / 4;
  // COMPARE_SET has two values.
  limits.request_bytes = std::max(limits.request_bytes, 2 * limits.value_bytes + keys);
}

StoreOptions build(const cli::GivenFlags& flags) {
  StoreOptions options;
  if (const Setting* setting = flags.find("bind")) options.endpoint.host = parse_bind(*setting);
  if (const Setting* setting = flags.find("port"))
    options.endpoint.port = parse_port_flag(*setting);
  options.token_file = cli::parse_file_name(flags, "token-file");
  options.certificate = {cli::parse_file_name(flags, "tls-cert"),
                         cli::parse_file_name(flags, "tls-key"),
                         cli::parse_file_name(flags, "tls-ca")};
  if (const Setting* setting = flags.find("snapshot")) options.snapshot = setting->value;
  if (const Setting* setting = flags.find("snapshot-interval"))
    options.snapshot_interval = parse_interval(*setting);
  options.server.forget_ended = std::chrono::hours(1);
  if (const Setting* setting = flags.find("forget-ended"))
    options.server.forget_ended = cli::parse_duration(*setting, true);
  if (const Setting* setting = flags.find("log-level")) options.level = parse_level(*setting);
  if (const Setting* setting = flags.find("legacy-clients"))
    options.server.old_clients_are_2_1 = parse_choice(*setting) == 0;
  read_limits(flags, options.server.limits);
  check_limits(flags, options.server.limits);
  return options;
}

}  // namespace

ParsedStore parse_store_options(const std::vector<std::string>& arguments) {
  const cli::CommandLine line = cli::parse_command_line(kProgram, arguments);
  if (auto text = cli::answer(kProgram, line.flags)) return {std::nullopt, std::move(*text)};
  if (!line.words.empty())
    throw cli::UsageError(in_quotes(line.words.front()) + " is too much; see --help");
  return {build(line.flags), ""};
}

}  // namespace drun::store
