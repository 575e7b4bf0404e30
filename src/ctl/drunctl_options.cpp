#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/closest_word.hpp"
#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "cli/answer.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "ctl/drunctl.hpp"
#include "hang/heartbeat_file.hpp"

namespace drun::ctl {
namespace {

using cli::Flag;
using cli::Setting;

constexpr std::uint16_t kDefaultPort = 29400;

constexpr auto kOwn = cli::Origin::Own;
constexpr std::string_view kFlagsGroup = "Flags";

// clang-format off
constexpr std::array kGetFlags{
    Flag{"wait", 0, "", "", kOwn, kFlagsGroup, "", "wait until the key is there"},
};
constexpr std::array kSetFlags{
    Flag{"file", 0, "FILE", "", kOwn, kFlagsGroup, "FILE", "write the file's bytes instead of VALUE"},
};
constexpr std::array kKeysFlags{
    Flag{"null", 0, "", "", kOwn, kFlagsGroup, "", "a NUL byte after each instead of a line's end"},
};
constexpr std::array kWatchFlags{
    Flag{"exact", 0, "", "", kOwn, kFlagsGroup, "", "only the key START itself"},
    Flag{"count", 0, "N", "", kOwn, kFlagsGroup, "", "end after N changes"},
};
constexpr std::array kStatusFlags{
    Flag{"watch", 0, "", "", kOwn, kFlagsGroup, "", "stay, and show it again whenever it changes"},
};
constexpr std::array kStacksFlags{
    Flag{"all", 0, "", "", kOwn, kFlagsGroup, "", "other threads too, and what the workers have started; nothing cut"},
    Flag{"collapsed", 0, "", "", kOwn, kFlagsGroup, "", "a line for each stack, as the tools for flame graphs read it"},
    Flag{"quick", 0, "", "", kOwn, kFlagsGroup, "", "no stacks, only states, from /proc: no worker is stopped for it"},
};
constexpr std::array kHealthFlags{
    Flag{"ready", 0, "", "", kOwn, kFlagsGroup, "", "only agents whose workers run are healthy"},
};

constexpr std::array kTimelineFlags{
    Flag{"output", 'o', "FILE", "", kOwn, kFlagsGroup, "FILE", "where to write it; \"-\", and without: standard output"},
    Flag{"html", 0, "", "", kOwn, kFlagsGroup, "", "one page for a browser instead of a trace for Perfetto and Chrome"},
};

constexpr std::array kCommands{
    cli::Command{"get", "KEY", "prints the value's bytes, nothing added; exit code 1: no such key", kGetFlags},
    cli::Command{"set", "KEY VALUE", "writes VALUE; if it is \"-\", standard input", kSetFlags},
    cli::Command{"add", "KEY [N]", "adds N (1 unless given) to a number; prints the sum", {}},
    cli::Command{"compare-set", "KEY EXPECTED NEW",
                 "writes NEW if the key holds EXPECTED (\"\": or is missing); prints what it holds then; exit code 1: "
                 "it held something else", {}},
    cli::Command{"check", "KEY...", "exit code 0: all keys are there; 1: not all", {}},
    cli::Command{"wait", "KEY...", "waits until all keys are there", {}},
    cli::Command{"barrier", "KEY N", "waits until N callers have come to KEY", {}},
    cli::Command{"delete", "KEY", "deletes the key; exit code 1: there was none", {}},
    cli::Command{"keys", "[START]", "lists the keys that begin with START, in order, one a line", kKeysFlags},
    cli::Command{"watch", "[START]", "shows what is there, then every change, one a line", kWatchFlags},
    cli::Command{"jobs", "", "lists drun's jobs in the store, one a line: id, state, agents", {}},
    cli::Command{"delete-job", "ID",
                 "forgets a job that has ended: its id may be used again; exit code 1: there is none, or it has agents", {}},
    cli::Command{"status", "[ID]",
                 "what the jobs of a store do, or job ID, node by node; without an endpoint those of this host; exit "
                 "code 0: running or succeeded; 1: failed; 3: neither; 4: there is none", kStatusFlags},
    cli::Command{"history", "[ID]",
                 "what became of a job's last rounds, while it runs and afterwards: when each began, why it was stopped", {}},
    cli::Command{"stacks", "[ID]",
                 "where the workers are now, of this user's jobs on this host, or of job ID: their stacks, equal ones once; "
                 "exit code 1: there is none", kStacksFlags},
    cli::Command{"health", "[ID]",
                 "asks the agents of this host and user, or those of job ID; exit code 0: all answer; 1: one does not, "
                 "or there is none", kHealthFlags},
    cli::Command{"doctor", "[PROGRAM [ARGS]]",
                 "checks this machine and PROGRAM; as the program of a job, all of its nodes and the network between "
                 "them; exit code 1: a check fails", {}},
    cli::Command{"timeline", "EVENTS...",
                 "draws what drun --events wrote, of all nodes of a job: rounds, restarts, causes, a row for each rank; "
                 "exit code 1: a file has no events", kTimelineFlags, true},
    cli::Command{"heartbeat", "[STEP|end]",
                 "in a worker of drun: says that it makes progress, and at which step it is; end: no further heartbeat comes "
                 "before it exits", {}},
    cli::Command{"page-key", "[ID]",
                 "prints what the status page asks for: of the token that is given, or of the jobs of this user here for "
                 "which drun has made one", {}},
    cli::Command{"job-token", "ID",
                 "prints the token with which job ID reaches what is its own in a drun-store that has the token given here, "
                 "and nothing else", {}},
    cli::Command{"stats", "", "shows the store's counters", {}},
    cli::Command{"ping", "", "measures how long an answer takes", {}},
};

// What it is called elsewhere.
constexpr auto kHabits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"cas", "compare-set"},
    {"exists", "check"},
    {"help", "--help"},
    {"incr", "add"},
    {"list", "keys, or jobs"},
    {"ls", "keys, or jobs"},
    {"ps", "status"},
    {"rm", "delete"},
});

constexpr std::array kFlags{
    Flag{"endpoint", 0, "E", "$DRUN_STORE, else localhost:29400", kOwn, kFlagsGroup, "", "host:port"},
    Flag{"timeout", 0, "TIME", "30s", kOwn, kFlagsGroup, "",
         "limit of the whole command, as in 10, 0.5, 250ms, 5s or 1h30m; watch and status --watch have none unless it is given, health 5 s, doctor 120 s"},
    Flag{"retry", 0, "", "", kOwn, kFlagsGroup, "", "try to connect until that time is over"},
    Flag{"json", 0, "", "", kOwn, kFlagsGroup, "", "JSON on standard output; what is not UTF-8 in base64"},
    Flag{"raw", 0, "", "", kOwn, kFlagsGroup, "",
         "keys as they are in the store; otherwise \"/\" is put before them, as torch's clients do"},
    Flag{"token-file", 0, "FILE", "", kOwn, kFlagsGroup, "FILE",
         "the job's token is in this file, unless it is in DRUN_TOKEN: the store is asked over TLS"},
    Flag{"tls-cert", 0, "FILE", "", kOwn, kFlagsGroup, "FILE",
         "instead of a token: a certificate in PEM, with its chain"},
    Flag{"tls-key", 0, "FILE", "", kOwn, kFlagsGroup, "FILE", "the key of --tls-cert"},
    Flag{"tls-ca", 0, "FILE", "", kOwn, kFlagsGroup, "FILE",
         "the authorities whose certificates are trusted, in PEM"},
    Flag{"prefix", 0, "P", "", kOwn, kFlagsGroup, "", "keys below P/, those of torch's PrefixStore"},
    cli::help_flag(kFlagsGroup),
    cli::version_flag(kFlagsGroup),
    cli::completion_flag(kFlagsGroup),
    cli::manual_flag(kFlagsGroup),
};
// clang-format on

constexpr std::array<cli::Variable, 1> kVariables{{{"endpoint", "DRUN_STORE", "", ""}}};

constexpr cli::Program kProgram{
    .name = "drunctl",
    .purpose = "reads and changes a key-value store: drun's, or one of PyTorch's TCPStore",
    .usage = "drunctl [flags] COMMAND [arguments]\n",
    .about =
        "Reads and changes a key-value store: drun's, or one of PyTorch's TCPStore.\n"
        "Flags may stand anywhere; those of a command come after it. After \"--\"\n"
        "everything is an argument.\n",
    .notes =
        "watch, jobs, delete-job and stats need drun's own store, and so do status and\n"
        "history with --endpoint; keys and barrier need that or torch 2.14. Exit codes:\n"
        "0 done, 1 no, 2 usage, of status 3 the job waits or is ending its workers, 4 it\n"
        "is not there, 124 the time is over, 125 the store cannot be reached or has\n"
        "closed the connection.\n",
    .flags = kFlags,
    .commands = kCommands,
    .variables = kVariables,
};

// An empty variable counts as not set.
const Setting* endpoint_setting(const cli::GivenFlags& flags) {
  const Setting* setting = flags.find("endpoint");
  const bool variable = setting != nullptr && setting->source == cli::Source::Variable;
  return variable && setting->value.empty() ? nullptr : setting;
}

CtlOptions build(const cli::GivenFlags& flags) {
  CtlOptions options;
  if (const Setting* setting = endpoint_setting(flags)) {
    const auto parsed = parse_endpoint(setting->value, kDefaultPort);
    if (!parsed) throw cli::UsageError(setting->shown + " " + parsed.error().what());
    options.endpoint = *parsed;
    options.endpoint_given = true;
  }
  if (const Setting* setting = flags.find("timeout"))
    options.timeout = parse_duration(*setting, true);
  if (const Setting* setting = flags.find("count"))
    options.count = static_cast<std::size_t>(cli::parse_integer<std::int64_t>(*setting, 1));
  if (const Setting* setting = flags.find("prefix")) options.prefix = setting->value;
  options.token_file = cli::parse_file_name(flags, "token-file");
  options.certificate = {cli::parse_file_name(flags, "tls-cert"),
                         cli::parse_file_name(flags, "tls-key"),
                         cli::parse_file_name(flags, "tls-ca")};
  if (const Setting* setting = flags.find("file")) options.file = setting->value;
  if (const Setting* setting = flags.find("output")) options.output = setting->value;
  options.html = flags.on("html");
  options.retry = flags.on("retry");
  options.json = flags.on("json");
  options.raw = flags.on("raw");
  options.wait = flags.on("wait");
  options.exact = flags.on("exact");
  options.null_separated = flags.on("null");
  options.ready = flags.on("ready");
  options.live = flags.on("watch");
  options.all = flags.on("all");
  options.collapsed = flags.on("collapsed");
  if (options.collapsed && options.json)
    throw cli::UsageError("--collapsed and --json are two forms of the same: give one of them");
  options.quick = flags.on("quick");
  return options;
}

// The flags of a program to look at are taken for drunctl's.
cli::CommandLine parse_line(const std::vector<std::string>& arguments) {
  try {
    return cli::parse_command_line(kProgram, arguments);
  } catch (const cli::UsageError& error) {
    if (std::find(arguments.begin(), arguments.end(), "doctor") == arguments.end()) throw;
    throw cli::UsageError(std::string(error.what()) +
                          "; the program's own stand behind --: drunctl doctor -- ./train --lr 1");
  }
}

// Behind "--" the command is a word like the others.
void take_command(CtlOptions& options) {
  if (options.words.empty()) throw cli::UsageError("a command is missing; see --help");
  options.command = options.words.front();
  options.words.erase(options.words.begin());
  if (kProgram.find_command(options.command) != nullptr) return;
  std::vector<std::string> names;
  for (const cli::Command& command : kCommands)
    names.emplace_back(command.name);
  std::string meant = closest_word(options.command, names);
  for (const auto& [habit, name] : kHabits)
    if (habit == options.command) meant = name;
  throw cli::UsageError("there is no command " + in_quotes(options.command) +
                        (meant.empty() ? "" : "; did you mean " + meant + "?") + "; see --help");
}

}  // namespace

std::string usage_of(std::string_view command) {
  return kProgram.find_command(command)->usage();
}

ParsedCtl parse(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment) {
  cli::CommandLine line = parse_line(arguments);
  if (line.command != nullptr && line.flags.on("help"))
    return {std::nullopt, cli::command_help(kProgram, *line.command)};
  if (auto text = cli::answer(kProgram, line.flags)) return {std::nullopt, std::move(*text)};
  (void)cli::add_variables(kProgram, environment, line.flags);
  CtlOptions options = build(line.flags);
  options.words = std::move(line.words);
  options.environment = environment;
  options.heartbeat_file = environment_variable(environment, hang::kHeartbeatVariable).value_or("");
  if (line.command != nullptr) {
    options.command = line.command->name;
  } else {
    take_command(options);
  }
  return {std::move(options), ""};
}

}  // namespace drun::ctl
