// What lives below this process: list, signal and kill it. A child subreaper inherits every orphan
// of its descendants, so "no child is left" proves that no descendant is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "launcher/process/exit_status.hpp"
#include "launcher/process/usage.hpp"

namespace drun::process {

struct Reaped {
  pid_t pid = 0;
  ExitStatus status;
  Usage usage{};
};
using OnReaped = std::function<void(const Reaped&)>;

// Collects every child of this process that has ended, without waiting. True when a child is left.
bool reap_children(const OnReaped& on_reaped);

// The direct children of this process, including those that have ended and were not waited for.
// Without /proc it asks the kernel number by number, and gives some of them if there are any.
[[nodiscard]] std::vector<pid_t> children();

// Some of the children of `self`, if it has any, by a question for each number that may be one. A
// few ten thousand questions find them, also where the kernel has begun with low numbers again.
[[nodiscard]] std::vector<pid_t> search_children(
    pid_t self, const std::function<bool(pid_t)>& is_child_of_self);

// Every descendant of this process, direct children first. Without /proc only children: what is
// below one becomes a child itself when that one ends.
[[nodiscard]] std::vector<pid_t> descendants();
// The same of another process; /proc must be there.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t pid);

// The direct children of another process; /proc must be there.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

// Whether `pid` is `above` itself, or started by it, however deep, with nobody in between gone.
[[nodiscard]] bool is_below(pid_t pid, pid_t above);

// When it started, by CLOCK_BOOTTIME and up to one tick (10 ms) early; nothing if /proc does not
// say.
[[nodiscard]] std::optional<std::chrono::nanoseconds> start_of(pid_t pid);

// The process neither catches nor ignores `signal`. False if /proc does not say.
[[nodiscard]] bool acts_by_default(pid_t pid, int signal);

// Sends `signal` to each process of `all`, a result of descendants(), that still is a descendant
// and is wanted (every one is if `wanted` is empty). Never reaches a stranger that got the process
// id of a descendant that ended meanwhile.
void signal_descendants(const std::vector<pid_t>& all, int signal,
                        const std::function<bool(pid_t)>& wanted = {});

// Blocks until one of `pids`, taken from descendants(), ends or can be reaped, or until `limit` is
// over. A zombie that somebody else has to collect does not count: its parent is still there, or a
// debugger holds it. Of many `pids` only the first few are watched.
void await_death(const std::vector<pid_t>& pids, std::chrono::milliseconds limit);

// SIGKILL to every descendant, until none is left or `limit` is over, as KillLimit counts it (a
// process that hangs inside the kernel cannot be killed; the signal stays pending in it). Blocks.
// True when none is left. The caller must have no children but those that may be killed.
bool kill_descendants(std::chrono::milliseconds limit, const OnReaped& on_reaped);

}  // namespace drun::process
