#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <system_error>

#include "cli/arguments.hpp"
#include "ctl/drunctl.hpp"
#include "drun/base/log.hpp"
#include "drun/store/errors.hpp"
#include "store/client/control_query.hpp"

namespace drun::store::ctl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDefaultTimeout{30'000};

// Without a connection: whatever the cause, the store cannot be reached.
int unreachable(const Error& error) {
  log::error(error.what());
  return kUnreachable;
}

int failed(const Error& error) {
  log::error(error.what());
  return error.code() == Errc::Timeout ? kTimeout : kUnreachable;
}

// A command under way: its settings and when its time is over.
class Command {
 public:
  explicit Command(const Settings& settings)
      : settings_(settings),
        start_(Clock::now()),
        limit_(settings.timeout.value_or(kDefaultTimeout)) {}

  const Settings& settings() const { return settings_; }
  const std::string& word(std::size_t index) const { return settings_.words[index]; }
  const std::vector<std::string>& words() const { return settings_.words; }
  Clock::time_point start() const { return start_; }
  Clock::time_point deadline() const { return start_ + limit_; }

  milliseconds left() const {
    return std::max(std::chrono::ceil<milliseconds>(deadline() - Clock::now()), milliseconds(0));
  }

  Result<Client> connect() const {
    ClientOptions options;
    options.prefix = settings_.prefix;
    options.raw_keys = settings_.raw;
    options.retry = settings_.retry;
    return Client::connect(settings_.endpoint, deadline(), options);
  }

  Result<ControlQuery> connect_control() const {
    return ControlQuery::open(settings_.endpoint, deadline(), settings_.retry);
  }

  // What stands before this user's keys in the store.
  std::string key_prefix() const {
    std::string prefix = settings_.raw ? "" : "/";
    if (!settings_.prefix.empty()) prefix += settings_.prefix + "/";
    return prefix;
  }

 private:
  const Settings& settings_;
  Clock::time_point start_;
  milliseconds limit_;
};

std::string read_all(std::istream& in, const std::string& name) {
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw std::system_error(errno, std::generic_category(), "read " + name);
  return bytes;
}

std::string value_argument(const Command& command) {
  const Settings& settings = command.settings();
  if (settings.file.has_value() == (command.words().size() == 2)) {
    throw UsageError("set needs a key and a value: set KEY VALUE, or set KEY --file FILE");
  }
  if (settings.file && *settings.file != "-") {
    if (std::filesystem::is_directory(*settings.file))
      throw UsageError("--file '" + *settings.file + "': Is a directory");
    errno = 0;
    std::ifstream in(*settings.file, std::ios::binary);
    if (!in)
      throw UsageError("--file '" + *settings.file +
                       "': " + std::generic_category().message(errno));
    return read_all(in, "'" + *settings.file + "'");
  }
  if (!settings.file && command.word(1) != "-") return command.word(1);
  std::ostringstream bytes;
  char buffer[65536];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    bytes.write(buffer, static_cast<std::streamsize>(n));
  }
  if (std::ferror(stdin) != 0) throw UsageError("cannot read standard input");
  return std::move(bytes).str();
}

// Prints a value: its bytes, or an object with its key.
void print_value(const Command& command, const std::string& value) {
  print(command.settings().json ? json_object({{"key", command.word(0)}, {"value", value}})
                                : value);
}

int get(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  if (command.settings().wait) {
    const auto value = client->get(command.word(0), command.left());
    if (!value) return failed(value.error());
    print_value(command, *value);
    return kOk;
  }
  const auto value = client->try_get(command.word(0), command.left());
  if (!value) return failed(value.error());
  if (!*value) {
    log::error("there is no key '" + escaped(command.word(0)) + "'");
    return kNo;
  }
  print_value(command, **value);
  return kOk;
}

int set(const Command& command) {
  const std::string value = value_argument(command);
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  if (const Status done = client->set(command.word(0), value, command.left()); !done) {
    return failed(done.error());
  }
  // set has no reply: a second request shows that the store took it.
  const auto there = client->check({command.word(0)}, command.left());
  return there ? kOk : failed(there.error());
}

int add(const Command& command) {
  const long long amount = command.words().size() > 1 ? parse_integer("add", command.word(1)) : 1;
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto sum = client->add(command.word(0), amount, command.left());
  if (!sum) return failed(sum.error());
  print(command.settings().json ? json_object({{"key", command.word(0)}}, {{"value", *sum}})
                                : std::to_string(*sum) + "\n");
  return kOk;
}

int compare_set(const Command& command) {
  const std::string& expected = command.word(1);
  const std::string& desired = command.word(2);
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto held = client->compare_set(command.word(0), expected, desired, command.left());
  if (!held) return failed(held.error());
  // A store answers with the expected value also where there is no such key.
  if (*held == expected && !expected.empty()) {
    const auto there = client->check({command.word(0)}, command.left());
    if (!there) return failed(there.error());
    if (!*there) {
      log::error("there is no key '" + escaped(command.word(0)) + "'");
      return kNo;
    }
  }
  print_value(command, *held);
  return *held == desired ? kOk : kNo;
}

int check(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto there = client->check(command.words(), command.left());
  if (!there) return failed(there.error());
  return *there ? kOk : kNo;
}

int wait(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const Status there = client->wait(command.words(), command.left());
  return there ? kOk : failed(there.error());
}

int barrier(const Command& command) {
  const long long callers = parse_integer("barrier", command.word(1));
  if (callers < 1) throw UsageError("barrier: N is the number of those that meet, at least 1");
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const Status passed = client->barrier(command.word(0), callers, command.left());
  return passed ? kOk : failed(passed.error());
}

int delete_key(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto deleted = client->delete_key(command.word(0), command.left());
  if (!deleted) return failed(deleted.error());
  return *deleted ? kOk : kNo;
}

int keys(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  auto found = client->list_keys(command.left());
  if (!found) return failed(found.error());
  std::vector<std::string> list = std::move(*found);
  if (!command.words().empty()) {
    std::erase_if(list, [&](const auto& key) { return !key.starts_with(command.word(0)); });
  }
  std::sort(list.begin(), list.end());
  if (command.settings().json) {
    print(json_list(list));
    return kOk;
  }
  std::string text;
  for (const std::string& key : list) {
    text += key;
    text += command.settings().null_separated ? '\0' : '\n';
  }
  print(text);
  return kOk;
}

int ping(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto start = Clock::now();
  // Every store knows this one; a ping proper is newer than some.
  const auto answer = client->num_keys(command.left());
  if (!answer) return failed(answer.error());
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  const std::string endpoint = to_string(command.settings().endpoint);
  print(command.settings().json
            ? json_object({{"endpoint", endpoint}}, {{"microseconds", took.count()}})
            : endpoint + " answers in " + std::to_string(took.count()) + " us\n");
  return kOk;
}

int stats(const Command& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const auto request = query->send(control::Stats{}, command.deadline());
  if (!request) return failed(request.error());
  const auto reply = query->receive(*request, command.deadline());
  if (!reply) return failed(reply.error());
  const auto* counters = std::get_if<control::Counters>(&*reply);
  if (counters == nullptr) return failed(Error(Errc::Malformed, "an unexpected answer to stats"));
  std::string text;
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  for (const auto& [name, value] : counters->counters) {
    numbers.emplace_back(name, static_cast<std::int64_t>(value));
    text += std::string(name) + " " + std::to_string(value) + "\n";
  }
  print(command.settings().json ? json_object({}, numbers) : text);
  return kOk;
}

void print_entry(const Command& command, const std::string& event, const control::Entry& entry) {
  const std::string_view key = entry.key.substr(command.key_prefix().size());
  if (!command.settings().json) {
    print(event + " " + escaped(key) + (entry.value ? " " + escaped(*entry.value) : "") + "\n");
    return;
  }
  Fields fields{{"event", event}, {"key", std::string(key)}};
  if (entry.value) fields.emplace_back("value", *entry.value);
  print(json_object(fields));
}

int watch(const Command& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const std::string key = command.key_prefix() + (command.words().empty() ? "" : command.word(0));
  const auto deadline =
      command.settings().timeout ? command.deadline() : Clock::now() + std::chrono::hours(876'000);
  const auto request = query->send(control::Watch{key, !command.settings().exact}, deadline);
  if (!request) return failed(request.error());
  query->end_without_reader(STDOUT_FILENO);
  for (std::size_t seen = 0; !command.settings().count || seen < *command.settings().count;) {
    const auto reply = query->receive(*request, deadline);
    if (query->has_no_reader()) throw NoReader();
    if (!reply) return failed(reply.error());
    if (const auto* snapshot = std::get_if<control::Snapshot>(&*reply)) {
      for (const auto& entry : snapshot->entries)
        print_entry(command, "is", entry);
    } else if (const auto* changes = std::get_if<control::Changes>(&*reply)) {
      for (const auto& entry : changes->changes) {
        print_entry(command, entry.value ? "set" : "delete", entry);
        ++seen;
      }
    }
  }
  return kOk;
}

struct Verb {
  std::size_t fewest;
  std::size_t most;
  const char* usage;
  int (*run)(const Command&);
};

constexpr std::size_t kAny = SIZE_MAX;

const std::map<std::string, Verb>& verbs() {
  static const std::map<std::string, Verb> kVerbs = {
      {"get", {1, 1, "get KEY", get}},
      {"set", {1, 2, "set KEY VALUE", set}},
      {"add", {1, 2, "add KEY [N]", add}},
      {"compare-set", {3, 3, "compare-set KEY EXPECTED NEW", compare_set}},
      {"check", {1, kAny, "check KEY...", check}},
      {"wait", {1, kAny, "wait KEY...", wait}},
      {"barrier", {2, 2, "barrier KEY N", barrier}},
      {"delete", {1, 1, "delete KEY", delete_key}},
      {"keys", {0, 1, "keys [START]", keys}},
      {"watch", {0, 1, "watch [START]", watch}},
      {"stats", {0, 0, "stats", stats}},
      {"ping", {0, 0, "ping", ping}},
  };
  return kVerbs;
}

}  // namespace

int run(const Settings& settings) {
  const auto verb = verbs().find(settings.command);
  if (verb == verbs().end()) {
    throw UsageError("there is no command '" + escaped(settings.command) + "'; see --help");
  }
  if (settings.words.size() < verb->second.fewest || settings.words.size() > verb->second.most) {
    throw UsageError(std::string("expected: drunctl ") + verb->second.usage);
  }
  return verb->second.run(Command(settings));
}

}  // namespace drun::store::ctl
