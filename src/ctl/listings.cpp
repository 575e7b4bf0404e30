#include "ctl/listings.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "ctl/drunctl.hpp"

namespace drun::ctl {
namespace {

using Numbers = std::vector<std::pair<std::string, std::int64_t>>;

}  // namespace

KeyList list_keys(const std::vector<std::string>& found, std::string_view prefix,
                  std::string_view start) {
  KeyList list;
  for (const std::string& key : found) {
    if (key.starts_with(prefix)) {
      if (key.compare(prefix.size(), start.size(), start) == 0)
        list.keys.push_back(key.substr(prefix.size()));
    } else if (key.starts_with(start)) {
      ++list.hidden;
    }
  }
  std::sort(list.keys.begin(), list.keys.end());
  return list;
}

std::string entry_line(std::string_view event, const store::control::Entry& entry,
                       std::string_view prefix, bool json) {
  const std::string_view key = entry.key.substr(prefix.size());
  if (!json)
    return std::string(event) + " " + escaped(key) +
           (entry.value ? " " + escaped(*entry.value) : "") + "\n";
  Fields fields{{"event", std::string(event)}, {"key", std::string(key)}};
  if (entry.value) fields.emplace_back("value", *entry.value);
  return json_object(fields);
}

std::string counter_lines(const store::control::Counters& counters, bool json) {
  std::string text;
  Numbers numbers;
  for (const auto& [name, value] : counters.counters) {
    numbers.emplace_back(escaped(name), static_cast<std::int64_t>(value));
    text += escaped(name) + " " + std::to_string(value) + "\n";
  }
  return json ? json_object({}, numbers) : text;
}

std::string job_lines(const jobs::Documents& documents, bool json) {
  std::string text;
  for (const auto& job : jobs::jobs_in(documents)) {
    const std::string state = job.outcome         ? "ended"
                              : job.nodes.empty() ? "abandoned"
                                                  : std::string(jobs::name_of(job.round.phase));
    const std::string agents = counted(job.nodes.size(), "agent");
    const std::string end =
        job.outcome ? ", exit code " + std::to_string(job.outcome->exit_code) : "";
    Numbers numbers{{"agents", static_cast<std::int64_t>(job.nodes.size())},
                    {"round", job.round.number}};
    if (job.outcome) numbers.emplace_back("exit_code", job.outcome->exit_code);
    text += json ? json_object({{"id", job.id}, {"state", state}}, numbers)
                 : escaped(job.id) + " " + state + " " + agents + end + "\n";
  }
  return text;
}

}  // namespace drun::ctl
