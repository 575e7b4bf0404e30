#include "ctl/key_commands.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl.hpp"
#include "ctl/listings.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;

std::string read_all(std::istream& in, const std::string& name) {
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw std::system_error(errno, std::generic_category(), "read " + name);
  return bytes;
}

std::string value_argument(const RunningCommand& command) {
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
void print_value(const RunningCommand& command, const std::string& value) {
  print(command.options().json ? json_object({{"key", command.word(0)}, {"value", value}})
                               : shown(value));
}

// Those of drun's own jobs have no "/" before them.
void say_hidden(std::size_t count) {
  if (count == 0) return;
  log::info("{} not shown: --raw shows those without \"/\" before them",
            counted(count, "key is", "keys are"));
}

}  // namespace

int get(const RunningCommand& command) {
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

int set(const RunningCommand& command) {
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

int add(const RunningCommand& command) {
  const long long amount = command.words().size() > 1 ? command.number(1) : 1;
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto sum = client->add(command.word(0), amount, command.left());
  if (!sum) return failed(sum.error());
  print(command.options().json ? json_object({{"key", command.word(0)}}, {{"value", *sum}})
                               : std::to_string(*sum) + "\n");
  return kOk;
}

int compare_set(const RunningCommand& command) {
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

int check(const RunningCommand& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto there = client->check(command.words(), command.left());
  if (!there) return failed(there.error());
  return *there ? kOk : kNo;
}

int wait(const RunningCommand& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const Status there = client->wait(command.words(), command.left());
  return there ? kOk : failed(there.error());
}

int barrier(const RunningCommand& command) {
  const long long callers = command.number(1);
  if (callers < 1) throw cli::UsageError("barrier: N is the number of those that meet, at least 1");
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const Status passed = client->barrier(command.word(0), callers, command.left());
  return passed ? kOk : failed(passed.error());
}

int delete_key(const RunningCommand& command) {
  auto client = command.connect();
  if (!client) return unreachable(client.error());
  const auto deleted = client->delete_key(command.word(0), command.left());
  if (!deleted) return failed(deleted.error());
  return *deleted ? kOk : kNo;
}

int keys(const RunningCommand& command) {
  auto client = command.connect_raw();
  if (!client) return unreachable(client.error());
  const auto found = client->list_keys(command.left());
  if (!found) return failed(found.error());
  const KeyList list =
      list_keys(*found, command.key_prefix(), command.words().empty() ? "" : command.word(0));
  if (command.options().prefix.empty()) say_hidden(list.hidden);
  if (command.options().json) {
    print(json_list(list.keys));
    return kOk;
  }
  std::string text;
  for (const std::string& key : list.keys) {
    text += command.options().null_separated ? key + '\0' : shown(key) + '\n';
  }
  print(text);
  return kOk;
}

int watch(const RunningCommand& command) {
  auto query = command.connect_control();
  if (!query) return unreachable(query.error());
  const std::string prefix = command.key_prefix();
  const std::string key = prefix + (command.words().empty() ? "" : command.word(0));
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
        print(entry_line("is", entry, prefix, command.options().json));
    } else if (const auto* changes = std::get_if<control::Changes>(&*reply)) {
      for (const auto& entry : changes->changes) {
        print(entry_line(entry.value ? "set" : "delete", entry, prefix, command.options().json));
        ++seen;
      }
    }
  }
  return kOk;
}

}  // namespace drun::ctl
