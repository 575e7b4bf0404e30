// What each event does in one state of a state machine, as text: a table that is read at a glance,
// and in which no event can be missing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace drun::test {

// In the order in which the table has them.
template <typename Machine>
using TableEvents = std::vector<std::pair<std::string, std::function<void(Machine&)>>>;

// The events that lead to a state.
using Way = std::vector<std::string>;

template <typename Machine>
void go(Machine& machine, const TableEvents<Machine>& events, const Way& way) {
  for (const std::string& step : way) {
    const auto found = std::find_if(events.begin(), events.end(),
                                    [&step](const auto& each) { return each.first == step; });
    if (found == events.end()) throw std::out_of_range("no event '" + step + "'");
    found->second(machine);
    (void)machine.news();
  }
}

// "event; event -> what they do", a line for all that do the same, folded at 96 columns; at the end
// those that do nothing. `make`: a new machine, whose news() is what has become of it since the
// last call.
template <typename Machine>
std::string what_each_does(const TableEvents<Machine>& events, const Way& way,
                           const std::function<std::unique_ptr<Machine>()>& make) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reactions;
  std::vector<std::string> idle;
  for (const auto& [name, event] : events) {
    const auto machine = make();
    go(*machine, events, way);
    event(*machine);
    const std::string news = machine->news();
    const auto same = std::find_if(reactions.begin(), reactions.end(),
                                   [&news](const auto& each) { return each.first == news; });
    if (news.empty())
      idle.push_back(name);
    else if (same != reactions.end())
      same->second.push_back(name);
    else
      reactions.push_back({news, {name}});
  }
  if (!idle.empty()) reactions.emplace_back("nothing", std::move(idle));
  std::string text = "\n";
  for (const auto& [reaction, names] : reactions) {
    std::string line;
    for (const std::string& name : names)
      line += (line.empty() ? "" : "; ") + name;
    line += " -> " + reaction;
    std::string indent = "  ";
    while (indent.size() + line.size() > 96) {
      const std::size_t fits = 96 - indent.size();
      std::size_t fold = line.rfind(' ', fits);
      if (fold == std::string::npos) fold = line.find(' ', fits);  // a long word
      if (fold == std::string::npos) break;
      text += indent + line.substr(0, fold) + "\n";
      line.erase(0, fold + 1);
      indent = "      ";
    }
    text += indent + line + "\n";
  }
  return text;
}

}  // namespace drun::test
