#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/closest_word.hpp"
#include "cli/arguments.hpp"
#include "cli/command_line.hpp"
#include "ctl/drunctl.hpp"

namespace drun::store::ctl {
namespace {

constexpr std::uint16_t kDefaultPort = 29400;

CLI::App& add_command(CLI::App& app, const char* name, const char* words, const char* text) {
  return *app.add_subcommand(name, text)->footer(words);
}

void add_commands(CLI::App& app, Settings& settings) {
  CLI::App& get =
      add_command(app, "get", "KEY", "the value's bytes, nothing added; exit code 1: no such key");
  get.add_flag("--wait", settings.wait, "until the key is there");
  CLI::App& set = add_command(app, "set", "KEY VALUE", "VALUE \"-\": from standard input");
  set.add_option("--file", settings.file, "the file's bytes instead of VALUE")->type_name("FILE");
  add_command(app, "add", "KEY [N]", "adds N (1) to a number; prints the sum");
  add_command(app, "compare-set", "KEY EXPECTED NEW",
              "sets it if it holds EXPECTED (\"\": or is missing); prints what it holds then; exit "
              "code 1: it was something else");
  add_command(app, "check", "KEY...", "exit code 0: all are there; 1: not all");
  add_command(app, "wait", "KEY...", "until all are there");
  add_command(app, "barrier", "KEY N", "until N callers have come to KEY");
  add_command(app, "delete", "KEY", "exit code 1: there was none");
  CLI::App& keys =
      add_command(app, "keys", "[START]", "the keys that begin with START, in order, one a line");
  keys.add_flag("--null", settings.null_separated, "a NUL byte behind each, no line's end");
  CLI::App& watch =
      add_command(app, "watch", "[START]", "what is there, then every change, one a line");
  watch.add_flag("--exact", settings.exact, "only the key START");
  watch
      .add_option_function<std::string>(
          "--count",
          [&](const std::string& text) { settings.count = parse_count("--count", text); },
          "ends after so many changes")
      ->type_name("N");
  add_command(app, "stats", "", "the store's counters");
  add_command(app, "ping", "", "how long an answer takes");
}

void add_options(CLI::App& app, Settings& settings) {
  const auto endpoint = [&](const std::string& text) {
    const auto parsed = parse_endpoint(text, kDefaultPort);
    if (!parsed) throw UsageError("--endpoint " + parsed.error().what());
    settings.endpoint = *parsed;
  };
  app.add_option_function<std::string>("--endpoint", endpoint,
                                       "host:port, default $DRUN_STORE, else localhost:29400")
      ->type_name("E");
  const auto timeout = [&](const std::string& text) {
    settings.timeout = parse_duration("--timeout", text);
  };
  app.add_option_function<std::string>(
         "--timeout", timeout,
         "for all of it, as in 10, 0.5, 250ms, 5s, 2m, 1h; default 30s; watch goes on until it is "
         "interrupted")
      ->type_name("TIME");
  app.add_flag("--retry", settings.retry, "tries to connect again and again, as long as that");
  app.add_flag("--json", settings.json, "JSON on standard output; what is not UTF-8 in base64");
  app.add_flag("--raw", settings.raw,
               "keys as they are; else \"/\" stands before them in the store, as with torch's "
               "clients");
  app.add_option("--prefix", settings.prefix, "keys below P/, as of torch's PrefixStore")
      ->type_name("P");
}

}  // namespace

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  CLI::App app(
      "Reads and changes a key-value store: drun's, or one of PyTorch's TCPStore.\n"
      "Options may stand anywhere, those of a command behind it; after \"--\" everything\n"
      "is an argument.",
      "drunctl");
  app.footer(
      "keys on a store older than torch 2.14, and watch and stats on any but drun's,\n"
      "do not work. Exit codes: 0 done, 1 no, 2 usage, 124 the time is over, 125 the\n"
      "store cannot be reached or has closed the connection.");
  prepare(app);
  add_commands(app, settings);
  add_options(app, settings);
  auto words = parse_command_line(app, argc, argv);
  if (!words) return std::nullopt;
  const char* variable = std::getenv("DRUN_STORE");
  if (app.count("--endpoint") == 0 && variable != nullptr && *variable != '\0') {
    const auto parsed = parse_endpoint(variable, kDefaultPort);
    if (!parsed) throw UsageError("DRUN_STORE: " + parsed.error().what());
    settings.endpoint = *parsed;
  }
  settings.words = std::move(*words);
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) {
    settings.command = chosen.front()->get_name();
    return settings;
  }
  // Behind "--" it is a word like the others.
  if (settings.words.empty()) throw UsageError("a command is missing; see --help");
  settings.command = settings.words.front();
  settings.words.erase(settings.words.begin());
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), settings.command) == commands.end()) {
    const std::string meant = closest_word(settings.command, commands);
    throw UsageError("there is no command '" + escaped(settings.command) + "'" +
                     (meant.empty() ? "" : "; did you mean " + meant + "?") + "; see --help");
  }
  return settings;
}

}  // namespace drun::store::ctl
