// Parses command lines for tests on a machine that is made up.
#pragma once

#include <string>
#include <vector>

#include "launcher/options.hpp"

namespace drun::launcher::test {

inline Surroundings made_up_machine() {
  Surroundings machine;
  machine.fresh_id = [] { return std::string("fresh-id"); };
  machine.host_name = [] { return std::string("node7"); };
  machine.count_devices = [](DeviceKind kind, const std::vector<std::string>&) -> Result<int> {
    switch (kind) {
      case DeviceKind::Cpu:
        return 12;
      case DeviceKind::Xpu:
        return Error(std::make_error_code(std::errc::no_such_device), "no Intel GPU is visible");
      default:
        return 4;
    }
  };
  machine.interface_address = [](const std::string& name) -> std::optional<std::string> {
    if (name == "eth1") return "10.1.2.3";
    return std::nullopt;
  };
  return machine;
}

// `arguments` as a shell would split them at blanks.
inline std::vector<std::string> words(const std::string& arguments) {
  std::vector<std::string> result;
  std::string word;
  for (const char c : arguments + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      result.push_back(word);
      word.clear();
    }
  }
  return result;
}

inline Parsed parse(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                    const std::string& name = "drun") {
  arguments.insert(arguments.begin(), name);
  return parse_options(arguments, environment, made_up_machine());
}

inline Parsed parse_line(const std::string& line, std::vector<std::string> environment = {}) {
  return parse(words(line), std::move(environment));
}

// Stops the test with drun's message where the line is refused.
inline Options options_of(const std::string& line, std::vector<std::string> environment = {}) {
  Parsed parsed = parse_line(line, std::move(environment));
  if (!parsed.options) throw std::runtime_error("refused: " + parsed.text);
  return *parsed.options;
}

}  // namespace drun::launcher::test
