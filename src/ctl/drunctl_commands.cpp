#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/counted.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "ctl/drunctl.hpp"
#include "ctl/drunctl_doctor.hpp"
#include "ctl/drunctl_health.hpp"
#include "ctl/drunctl_jobs.hpp"
#include "ctl/drunctl_stacks.hpp"
#include "ctl/drunctl_status.hpp"
#include "ctl/drunctl_timeline.hpp"
#include "drun/store/errors.hpp"
#include "hang/heartbeat_file.hpp"
#include "rendezvous/keys.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using std::chrono::milliseconds;
using store::Client;
using store::ClientOptions;
using store::ControlQuery;
using store::Errc;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDefaultTimeout{30'000};

// A command under way: its options and when its time is over.
class Command {
 public:
  explicit Command(const CtlOptions& options)
      : options_(options),
        start_(Clock::now()),
        limit_(options.timeout.value_or(kDefaultTimeout)) {}

  const CtlOptions& options() const { return options_; }
  const std::string& word(std::size_t index) const { return options_.words[index]; }
  const std::vector<std::string>& words() const { return options_.words; }
  Clock::time_point start() const { return start_; }
  Clock::time_point deadline() const { return start_ + limit_; }

  milliseconds left() const { return time_left(deadline()); }

  Result<Client> connect() const { return connect(store(), options_.prefix, options_.raw); }
  // Whatever is at the endpoint itself.
  Result<Client> connect_there() const { return connect(options_.endpoint, "", true); }
  // Sees all keys, as they are.
  Result<Client> connect_raw() const { return connect(store(), "", true); }

  Result<ControlQuery> connect_control() const {
    return ControlQuery::open(store(), deadline(), options_.retry, options_.tls);
  }
  Result<ControlQuery> connect_control_there() const {
    return ControlQuery::open(options_.endpoint, deadline(), options_.retry, options_.tls);
  }

  // What stands before this user's keys in the store.
  std::string key_prefix() const {
    std::string prefix = options_.raw ? "" : "/";
    if (!options_.prefix.empty()) prefix += options_.prefix + "/";
    return prefix;
  }

 private:
  Endpoint store() const { return followed(options_.endpoint, deadline(), options_.tls); }

  Result<Client> connect(const Endpoint& place, const std::string& prefix, bool raw) const {
    ClientOptions options;
    options.prefix = prefix;
    options.raw_keys = raw;
    options.retry = options_.retry;
    options.tls = options_.tls;
    auto client = Client::connect(place, deadline(), options);
    if (client || options.tls != nullptr || client.error().code() != Errc::Closed) return client;
    return Error(Errc::Closed,
                 client.error().what() + ", as a store does that asks for a token (--token-file)");
  }

  const CtlOptions& options_;
  Clock::time_point start_;
  milliseconds limit_;
};

std::string read_all(std::istream& in, const std::string& name) {
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw std::system_error(errno, std::generic_category(), "read " + name);
  return bytes;
}

std::string value_argument(const Command& command) {
  const CtlOptions& options = command.options();
  if (options.file.has_value() == (command.words().size() == 2)) {
    throw cli::UsageError("set needs a key and a value: set KEY VALUE, or set KEY --file FILE");
  }
  if (options.file && *options.file != "-") {
    if (std::filesystem::is_directory(*options.file))
      throw cli::UsageError("--file '" + *options.file + "': Is a directory");
    errno = 0;
    std::ifstream in(*options.file, std::ios::binary);
    if (!in)
      throw cli::UsageError("--file '" + *options.file +
                            "': " + std::generic_category().message(errno));
    return read_all(in, "'" + *options.file + "'");
  }
  if (!options.file && command.word(1) != "-") return command.word(1);
  std::ostringstream bytes;
  char buffer[65536];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    bytes.write(buffer, static_cast<std::streamsize>(n));
  }
  if (std::ferror(stdin) != 0) throw cli::UsageError("cannot read standard input");
  return std::move(bytes).str();
}

// Prints a value: its bytes, or an object with its key.
void print_value(const Command& command, const std::string& value) {
  print(command.options().json ? json_object({{"key", command.word(0)}, {"value", value}})
                               : shown(value));
}

int get(const Command& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  if (command.options().wait) {
    const auto value = client->get(command.word(0), command.left());
    if (!value) return failed(value.error());
    print_value(command, *value);
    return kOk;
  }
  const auto value = client->try_get(command.word(0), command.left());
  if (!value) return failed(value.error());
  if (!*value) {
    log::error("there is no key '{}'", escaped(command.word(0)));
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

// The word of `command` that is a number.
long long number(const char* command, const std::string& word) {
  return cli::parse_integer<long long>({nullptr, cli::Source::Flag, command, word});
}

int add(const Command& command) {
  const long long amount = command.words().size() > 1 ? number("add", command.word(1)) : 1;
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto sum = client->add(command.word(0), amount, command.left());
  if (!sum) return failed(sum.error());
  print(command.options().json ? json_object({{"key", command.word(0)}}, {{"value", *sum}})
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
  // A store answers with the expected value even if there is no such key.
  if (*held == expected && !expected.empty()) {
    const auto there = client->check({command.word(0)}, command.left());
    if (!there) return failed(there.error());
    if (!*there) {
      log::error("there is no key '{}'", escaped(command.word(0)));
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
  const long long callers = number("barrier", command.word(1));
  if (callers < 1) throw cli::UsageError("barrier: N is the number of those that meet, at least 1");
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

// Those of drun's own jobs have no "/" before them.
void say_hidden(std::size_t count) {
  if (count == 0) return;
  log::info("{} not shown: --raw shows those without \"/\" before them",
            counted(count, "key is", "keys are"));
}

int keys(const Command& command) {
  auto client = command.connect_raw();
  if (!client) return unreachable(client.error());
  const auto found = client->list_keys(command.left());
  if (!found) return failed(found.error());
  const std::string start = command.words().empty() ? "" : command.word(0);
  const std::string prefix = command.key_prefix();
  std::vector<std::string> list;
  std::size_t hidden = 0;
  for (const std::string& key : *found) {
    if (key.starts_with(prefix)) {
      if (key.compare(prefix.size(), start.size(), start) == 0)
        list.push_back(key.substr(prefix.size()));
    } else if (key.starts_with(start)) {
      ++hidden;
    }
  }
  if (command.options().prefix.empty()) say_hidden(hidden);
  std::sort(list.begin(), list.end());
  if (command.options().json) {
    print(json_list(list));
    return kOk;
  }
  std::string text;
  for (const std::string& key : list) {
    text += command.options().null_separated ? key + '\0' : shown(key) + '\n';
  }
  print(text);
  return kOk;
}

int ping(const Command& command) {
  auto client = command.connect_there();
  if (!client) return unreachable(client.error());
  const auto start = Clock::now();
  // Every store knows this one; a ping proper is newer than some.
  const auto answer = client->num_keys(command.left());
  if (!answer) return failed(answer.error());
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  const std::string endpoint = to_string(command.options().endpoint);
  print(command.options().json
            ? json_object({{"endpoint", endpoint}}, {{"microseconds", took.count()}})
            : endpoint + " answers in " + std::to_string(took.count()) + " us\n");
  return kOk;
}

int stats(const Command& command) {
  auto query = command.connect_control_there();
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
    numbers.emplace_back(escaped(name), static_cast<std::int64_t>(value));
    text += escaped(name) + " " + std::to_string(value) + "\n";
  }
  print(command.options().json ? json_object({}, numbers) : text);
  return kOk;
}

void print_entry(const Command& command, const std::string& event, const control::Entry& entry) {
  const std::string_view key = entry.key.substr(command.key_prefix().size());
  if (!command.options().json) {
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
      command.options().timeout ? command.deadline() : Clock::now() + std::chrono::hours(876'000);
  const auto request = query->send(control::Watch{key, !command.options().exact}, deadline);
  if (!request) return failed(request.error());
  query->end_without_reader(STDOUT_FILENO);
  for (std::size_t seen = 0; !command.options().count || seen < *command.options().count;) {
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

int jobs(const Command& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const auto found = read_documents(*query, std::string(rendezvous::kAllJobs), command.deadline());
  if (!found) return failed(found.error());
  std::string text;
  for (const auto& job : jobs::jobs_in(found->documents)) {
    const std::string state = job.outcome         ? "ended"
                              : job.nodes.empty() ? "abandoned"
                                                  : std::string(jobs::name_of(job.round.phase));
    const std::string agents = counted(job.nodes.size(), "agent");
    const std::string end =
        job.outcome ? ", exit code " + std::to_string(job.outcome->exit_code) : "";
    std::vector<std::pair<std::string, std::int64_t>> numbers{
        {"agents", static_cast<std::int64_t>(job.nodes.size())}, {"round", job.round.number}};
    if (job.outcome) numbers.emplace_back("exit_code", job.outcome->exit_code);
    text += command.options().json ? json_object({{"id", job.id}, {"state", state}}, numbers)
                                   : escaped(job.id) + " " + state + " " + agents + end + "\n";
  }
  print(text);
  return kOk;
}

int delete_ended_job(const Command& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const auto deletion = delete_job(*query, command.word(0), command.deadline());
  if (!deletion) return failed(deletion.error());
  if (*deletion == Deletion::NoSuchJob) log::error("there is no job '{}'", command.word(0));
  if (*deletion == Deletion::HasAgents)
    log::error("the job '{}' has agents: it can be deleted when they have gone", command.word(0));
  return *deletion == Deletion::Done ? kOk : kNo;
}

constexpr milliseconds kHealthTimeout{5'000};

int health_of_host(const Command& command) {
  const CtlOptions& options = command.options();
  return health(options, command.start() + options.timeout.value_or(kHealthTimeout));
}

int status_of_jobs(const Command& command) {
  return status(command.options(), command.deadline());
}

constexpr milliseconds kDoctorTimeout{120'000};

int doctor_of_nodes(const Command& command) {
  const CtlOptions& options = command.options();
  return doctor(options, command.start() + options.timeout.value_or(kDoctorTimeout));
}

int stacks_of_jobs(const Command& command) {
  return stacks(command.options(), command.deadline());
}

int timeline_of_files(const Command& command) {
  return draw_timeline(command.options());
}

int heartbeat(const Command& command) {
  const std::string& file = command.options().heartbeat_file;
  const std::string text = command.words().empty() ? "" : command.word(0);
  if (!text.empty() && text != hang::kLastHeartbeat) (void)number("heartbeat", text);
  if (file.empty()) {
    log::error(
        "{} is not set: this is for programs that drun has started (--log-dir /dev/null "
        "leaves them no file)",
        hang::kHeartbeatVariable);
    return kUsageError;
  }
  const Status written = hang::write_heartbeat(file, text);
  if (written) return kOk;
  log::error("{}", written.error().what());
  return kDrunFailed;
}

struct Verb {
  std::size_t fewest;
  std::size_t most;
  int (*run)(const Command&);
};

constexpr std::size_t kAny = SIZE_MAX;

const std::map<std::string, Verb>& verbs() {
  static const std::map<std::string, Verb> kVerbs = {
      {"get", {1, 1, get}},
      {"set", {1, 2, set}},
      {"add", {1, 2, add}},
      {"compare-set", {3, 3, compare_set}},
      {"check", {1, kAny, check}},
      {"wait", {1, kAny, wait}},
      {"barrier", {2, 2, barrier}},
      {"delete", {1, 1, delete_key}},
      {"keys", {0, 1, keys}},
      {"watch", {0, 1, watch}},
      {"heartbeat", {0, 1, heartbeat}},
      {"stats", {0, 0, stats}},
      {"ping", {0, 0, ping}},
      {"jobs", {0, 0, jobs}},
      {"delete-job", {1, 1, delete_ended_job}},
      {"health", {0, 1, health_of_host}},
      {"status", {0, 1, status_of_jobs}},
      {"doctor", {0, kAny, doctor_of_nodes}},
      {"history", {0, 1, status_of_jobs}},
      {"stacks", {0, 1, stacks_of_jobs}},
      {"timeline", {1, kAny, timeline_of_files}},
  };
  return kVerbs;
}

}  // namespace

bool asks_a_store(const CtlOptions& options) {
  constexpr std::array<std::string_view, 4> kOthers{"doctor", "health", "heartbeat", "timeline"};
  return std::find(kOthers.begin(), kOthers.end(), options.command) == kOthers.end();
}

int run(const CtlOptions& options) {
  const auto verb = verbs().find(options.command);
  if (verb == verbs().end()) {
    throw cli::UsageError("there is no command '" + escaped(options.command) + "'; see --help");
  }
  if (options.words.size() < verb->second.fewest || options.words.size() > verb->second.most) {
    throw cli::UsageError("expected: drunctl " + usage_of(options.command));
  }
  return verb->second.run(Command(options));
}

}  // namespace drun::ctl
