#include <cstdio>
#include <cstdlib>

#include "store/arguments.hpp"
#include "store/drunctl.hpp"

namespace drun::store::ctl {
namespace {

constexpr const char* kHelp = R"(Usage: drunctl [options] COMMAND [arguments]

Reads and changes a key-value store: drun's, or one of PyTorch's TCPStore.
Options may stand anywhere; after "--" everything is an argument.

  get KEY              the value's bytes, nothing added; exit code 1: no such key
                         --wait: until the key is there
  set KEY VALUE        VALUE "-": from standard input; or --file FILE for VALUE
  add KEY [N]          adds N (1) to a number; prints the sum
  compare-set KEY EXPECTED NEW
                       sets it if it holds EXPECTED ("": or is missing); prints
                       what it holds then; exit code 1: it was something else
  check KEY...         exit code 0: all are there; 1: not all
  wait KEY...          until all are there
  barrier KEY N        until N callers have come to KEY
  delete KEY           exit code 1: there was none
  keys [START]         the keys that begin with START, in order, one a line
                         --null: a NUL byte behind each instead of a line's end
  watch [START]        what is there, then every change, one a line
                         --exact: only the key START; --count N: ends after N changes
  stats                the store's counters
  ping                 how long an answer takes

  --endpoint E         host:port, default $DRUN_STORE, else localhost:29400
  --timeout TIME       for all of it, as in 10, 0.5, 250ms, 5s, 2m, 1h;
                       default 30s; watch goes on until it is interrupted
  --retry              tries to connect again and again, as long as that
  --json               JSON on standard output; what is not UTF-8 in base64
  --raw                keys as they are; else "/" stands before them in the
                       store, as with torch's clients
  --prefix P           keys below P/, as of torch's PrefixStore
  --help, --version

keys on a store older than torch 2.14, and watch and stats on any but drun's,
do not work. Exit codes: 0 done, 1 no, 2 usage, 124 the time is over, 125 the
store cannot be reached or has closed the connection.
)";

// Takes one option into `settings`; false: the next argument is none.
bool take_option(Arguments& arguments, Settings& settings) {
  if (const auto endpoint = arguments.take_value("--endpoint")) {
    const auto parsed = parse_endpoint(*endpoint, settings.endpoint.port);
    if (!parsed) throw UsageError("--endpoint " + parsed.error().what());
    settings.endpoint = *parsed;
  } else if (const auto timeout = arguments.take_value("--timeout")) {
    settings.timeout = parse_duration("--timeout", *timeout);
  } else if (const auto prefix = arguments.take_value("--prefix")) {
    settings.prefix = *prefix;
  } else if (const auto file = arguments.take_value("--file")) {
    settings.file = *file;
  } else if (const auto count = arguments.take_value("--count")) {
    settings.count = parse_count("--count", *count);
  } else if (arguments.take_switch("--retry")) {
    settings.retry = true;
  } else if (arguments.take_switch("--json")) {
    settings.json = true;
  } else if (arguments.take_switch("--raw")) {
    settings.raw = true;
  } else if (arguments.take_switch("--wait")) {
    settings.wait = true;
  } else if (arguments.take_switch("--exact")) {
    settings.exact = true;
  } else if (arguments.take_switch("--null")) {
    settings.null_separated = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  if (const char* endpoint = std::getenv("DRUN_STORE"); endpoint != nullptr) {
    const auto parsed = parse_endpoint(endpoint, settings.endpoint.port);
    if (!parsed) throw UsageError("DRUN_STORE: " + parsed.error().what());
    settings.endpoint = *parsed;
  }
  Arguments arguments(argc, argv);
  std::vector<std::string> words;
  while (!arguments.empty()) {
    if (take_option(arguments, settings)) continue;
    if (arguments.take_switch("--help") || arguments.take_switch("-h")) {
      std::fputs(kHelp, stdout);
      return std::nullopt;
    }
    if (arguments.take_switch("--version")) {
      std::puts("drunctl " DRUN_VERSION);
      return std::nullopt;
    }
    if (auto word = arguments.take_word()) words.push_back(std::move(*word));
  }
  if (words.empty()) throw UsageError("a command is missing; see --help");
  settings.command = words.front();
  settings.words.assign(words.begin() + 1, words.end());
  return settings;
}

}  // namespace drun::store::ctl
