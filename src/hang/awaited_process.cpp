#include "hang/awaited_process.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace drun::hang {
namespace {

using Family = std::map<pid_t, WaitingProcess>;
using Whom = Awaited::Whom;

constexpr int kMostGenerations = 64;  // a change meanwhile may make a circle

std::vector<pid_t> children_of(pid_t pid, const Family& processes) {
  std::vector<pid_t> children;
  for (const auto& [child, process] : processes)
    if (process.parent == pid) children.push_back(child);
  return children;
}

bool is_below(pid_t pid, pid_t above, const Family& processes) {
  for (int i = 0; i < kMostGenerations; ++i) {
    const auto process = processes.find(pid);
    if (process == processes.end()) return false;
    pid = process->second.parent;
    if (pid == above) return true;
  }
  return false;
}

// Who has the other end of a pair of sockets itself wakes itself up by it, as event loops do: that
// children have inherited it says nothing. Of a pipe both ends are often kept.
bool answers_to(const WaitingProcess& process, const WaitingProcess& waiter) {
  return std::any_of(
      waiter.awaits_files.begin(), waiter.awaits_files.end(), [&](const std::string& file) {
        const bool own = file.starts_with("socket:") && waiter.answers.contains(file);
        return !own && process.answers.contains(file);
      });
}

// The processes below `pid` that it waits for.
std::vector<pid_t> awaited_by(pid_t pid, const Family& processes) {
  const WaitingProcess& waiter = processes.at(pid);
  if (waiter.awaits_children) return children_of(pid, processes);
  std::vector<pid_t> awaited;
  for (const auto& [child, process] : processes)
    if (answers_to(process, waiter) && is_below(child, pid, processes)) awaited.push_back(child);
  return awaited;
}

// A shell that has started the program takes no part in the job, so it has no connection.
std::optional<pid_t> program_of(pid_t shell, const Family& processes) {
  const WaitingProcess& process = processes.at(shell);
  if (!process.awaits_children || process.connected) return std::nullopt;
  std::vector<pid_t> children = children_of(shell, processes);
  if (children.size() > 1)
    std::erase_if(children, [&](pid_t child) { return !processes.at(child).connected; });
  return children.size() == 1 ? std::optional(children.front()) : std::nullopt;
}

// Follows those that wait for one another, each once: many may wait for the same ones.
class Chains {
 public:
  explicit Chains(const Family& processes) : processes_(processes) {}

  // The end of the chain from `pid` on. Nullopt: one of them waits for a connection.
  std::optional<pid_t> end_of(pid_t pid) {
    // A change meanwhile may make a circle: then it ends where it closes.
    const auto [known, is_new] = ends_.try_emplace(pid, pid);
    if (!is_new) return known->second;
    const auto end = find_end(pid);
    ends_.at(pid) = end;
    return end;
  }

 private:
  std::optional<pid_t> find_end(pid_t pid) {
    const WaitingProcess& waiter = processes_.at(pid);
    if (waiter.awaits_network) return std::nullopt;
    const auto awaited = awaited_by(pid, processes_);
    if (awaited.empty())
      return waiter.threads_on_network && !waiter.awaits_children && waiter.awaits_files.empty()
                 ? std::nullopt
                 : std::optional(pid);
    std::optional<pid_t> busy;
    std::optional<pid_t> idle;
    for (const pid_t child : awaited) {
      const auto end = end_of(child);
      if (!end) return std::nullopt;
      // One that waits for what this one gives it to do is not the one that hangs.
      auto& found = answers_to(waiter, processes_.at(child)) ? idle : busy;
      if (!found) found = end;
    }
    return busy ? busy : idle;
  }

  const Family& processes_;
  std::map<pid_t, std::optional<pid_t>> ends_;
};

}  // namespace

Awaited whom_it_awaits(pid_t worker, const Family& processes) {
  Awaited result;
  result.program = worker;
  if (!processes.contains(worker)) return result;
  for (std::size_t steps = 0; steps < processes.size(); ++steps) {
    const auto below = program_of(result.program, processes);
    if (!below) break;
    result.program = *below;
  }
  const auto end = Chains(processes).end_of(result.program);
  if (!end) {
    result.whom = Whom::Others;
  } else if (*end != result.program) {
    result.whom = Whom::OwnChild;
    result.child = *end;
  }
  return result;
}

}  // namespace drun::hang
