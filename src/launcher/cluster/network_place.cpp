#include "launcher/cluster/network_place.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/lower_case.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "launcher/cluster/hostlist.hpp"

namespace drun::launcher::cluster {
namespace {

// A switch below itself is a mistake; so many levels no network has.
constexpr std::size_t kMostLevels = 32;
constexpr std::size_t kLongestPlace = 1'000;  // every node is told of it
// A few words stand for many names: of a file without sense no more is kept than this.
constexpr std::size_t kMostNamed = 10 * kMostHosts;

struct Switch {
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;
};

Error wrong(std::size_t line, const std::string& what) {
  return {std::make_error_code(std::errc::invalid_argument),
          "line " + std::to_string(line) + ": " + what};
}

// "Key=Value" apart; the key in lower case.
std::pair<std::string, std::string> setting(std::string_view word) {
  const std::string key = lower_case(std::string(take_until(word, '=')));
  return {key, std::string(word)};
}

Result<Switch> read_line(std::string_view text, std::size_t number) {
  Switch result;
  while (!(text = trimmed(text)).empty()) {
    const auto end = std::min(text.find_first_of(" \t"), text.size());
    const auto [key, value] = setting(text.substr(0, end));
    text.remove_prefix(end);
    if (key == "switchname" || key == "blockname") {
      result.name = value;
    } else if (key == "nodes" || key == "switches") {
      auto list = expand_hostlist(value);
      if (!list) return wrong(number, list.error().what());
      (key == "nodes" ? result.nodes : result.switches) = std::move(*list);
    } else if (key != "linkspeed" && key != "blocksizes") {
      return wrong(number, "'" + printable(key.substr(0, 64)) +
                               "': expected SwitchName, BlockName, Nodes or Switches");
    }
  }
  if (result.name.empty() && !(result.nodes.empty() && result.switches.empty()))
    return wrong(number, "it names no switch: expected SwitchName=NAME");
  return result;
}

Result<std::vector<Switch>> read_switches(std::string_view file) {
  std::vector<Switch> result;
  std::size_t named = 0;
  for (std::size_t number = 1; !file.empty(); ++number) {
    std::string_view line = take_until(file, '\n');
    line = line.substr(0, line.find('#'));
    auto read = read_line(line, number);
    if (!read) return read.error();
    named += 1 + read->nodes.size() + read->switches.size();
    if (named > kMostNamed)
      return wrong(number, "more than " + std::to_string(kMostNamed) + " nodes and switches");
    if (!read->name.empty()) result.push_back(std::move(*read));
  }
  return result;
}

const Switch* switch_of(const std::vector<Switch>& switches, const std::string& node) {
  const auto found = std::find_if(switches.begin(), switches.end(), [&](const Switch& each) {
    return std::find(each.nodes.begin(), each.nodes.end(), node) != each.nodes.end();
  });
  return found == switches.end() ? nullptr : &*found;
}

}  // namespace

std::string network_place(std::string_view address, std::string_view pattern) {
  std::string allocation;
  while (pattern.find('.') != std::string_view::npos &&
         address.find('.') != std::string_view::npos) {
    (void)take_until(pattern, '.');  // its last word is the node's, which may have dots
    allocation += (allocation.empty() ? "" : "/") + std::string(take_until(address, '.'));
  }
  return allocation;
}

Result<std::string> network_place_in(std::string_view file, const std::vector<std::string>& names) {
  const auto switches = read_switches(file);
  if (!switches) return switches.error();
  const Switch* own = nullptr;
  for (const std::string& name : names)
    if (own == nullptr) own = switch_of(*switches, name);
  if (own == nullptr)
    return Error(std::make_error_code(std::errc::invalid_argument),
                 "no switch has this node" +
                     (names.empty() ? std::string() : " (" + printable(names.front()) + ")"));
  std::map<std::string, std::string> above;
  for (const Switch& each : *switches)
    for (const std::string& below : each.switches)
      above.emplace(below, each.name);
  std::string allocation = own->name;
  std::size_t levels = 1;
  for (auto up = above.find(own->name); up != above.end(); up = above.find(up->second)) {
    if (++levels > kMostLevels)
      return Error(std::make_error_code(std::errc::invalid_argument),
                   "the switches above " + printable(own->name) + " go round in a circle");
    allocation = up->second + "/" + allocation;
  }
  if (allocation.size() > kLongestPlace)
    return Error(std::make_error_code(std::errc::invalid_argument),
                 "the names of the switches above this node have more than " +
                     std::to_string(kLongestPlace) + " characters");
  return allocation;
}

}  // namespace drun::launcher::cluster
