// drunctl's parts: what was asked for, the answers as text or JSON, and the commands.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/store/client.hpp"

namespace drun::store::ctl {

// Exit codes, for scripts.
inline constexpr int kOk = 0;
inline constexpr int kNo = 1;  // the key is missing, the condition does not hold
inline constexpr int kUsage = 2;
inline constexpr int kTimeout = 124;
inline constexpr int kUnreachable = 125;
inline constexpr int kNoReader = 141;  // as a shell says it of a program that SIGPIPE ended

// Nobody reads the output any more: no error to talk about.
class NoReader : public std::exception {};

struct Settings {
  Endpoint endpoint{"localhost", 29400};
  std::optional<std::chrono::milliseconds> timeout;  // nullopt: the command's own
  bool retry = false;
  bool json = false;
  bool raw = false;
  bool wait = false;                 // get
  bool exact = false;                // watch
  bool null_separated = false;       // keys
  std::optional<std::size_t> count;  // watch
  std::string prefix;
  std::optional<std::string> file;
  std::string command;
  std::vector<std::string> words;  // after the command
};

// Reads the command line. Throws UsageError. nullopt: --help or --version, which has been answered.
[[nodiscard]] std::optional<Settings> parse(int argc, char** argv);

// Runs the command; the exit code. Throws UsageError.
int run(const Settings& settings);

// ---- output: to standard output, in one piece each, flushed. Throws NoReader ----

void print(std::string_view bytes);

// {"key": ..., "value": ...}; text that is not UTF-8 as "key_base64", "value_base64".
using Fields = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string json_object(
    const Fields& text_fields,
    const std::vector<std::pair<std::string, std::int64_t>>& numbers = {});
// A list of strings; one that is not UTF-8 is {"base64": ...}.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items);
// One line: control characters and bytes that are not UTF-8 as \n, \t, \\, \xNN.
[[nodiscard]] std::string escaped(std::string_view bytes);

}  // namespace drun::store::ctl
