// The command lines of drun-store and drunctl: long options ("--name value", "--name=value"), then
// words. What is wrong is thrown as a UsageError, which main turns into one line and exit code 2.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace drun::store {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Takes arguments one after the other.
class Arguments {
 public:
  Arguments(int argc, char** argv);

  // If the next argument is this option (a switch): takes it.
  [[nodiscard]] bool take_switch(std::string_view option);
  // If the next argument is this option: takes it and its value. UsageError when the value is
  // missing.
  [[nodiscard]] std::optional<std::string> take_value(std::string_view option);
  // The next word, one that is no option; after "--" everything is a word, and so is "-".
  // UsageError at an option that nobody took.
  [[nodiscard]] std::optional<std::string> take_word();

  [[nodiscard]] bool empty() const { return next_ == arguments_.size(); }

 private:
  [[nodiscard]] bool at_option() const;

  std::vector<std::string> arguments_;
  std::size_t next_ = 0;
  bool only_words_ = false;
};

// "4096", "64K", "16M", "2G": bytes. `option` is named in the error.
[[nodiscard]] std::size_t parse_size(std::string_view option, std::string_view text);
// A count of at least 1.
[[nodiscard]] std::size_t parse_count(std::string_view option, std::string_view text);
// Seconds, "0.5" or "30"; "250ms", "5s", "2m", "1h".
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view option,
                                                       std::string_view text);
// A signed decimal number.
[[nodiscard]] long long parse_integer(std::string_view what, std::string_view text);

}  // namespace drun::store
