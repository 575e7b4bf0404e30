// The commands of drunctl about keys of a store. Each gives the exit code, and throws
// cli::UsageError.
#pragma once

#include "ctl/running_command.hpp"

namespace drun::ctl {

int get(const RunningCommand& command);
int set(const RunningCommand& command);
int add(const RunningCommand& command);
int compare_set(const RunningCommand& command);
int check(const RunningCommand& command);
int wait(const RunningCommand& command);
int barrier(const RunningCommand& command);
int delete_key(const RunningCommand& command);
int keys(const RunningCommand& command);
int watch(const RunningCommand& command);

}  // namespace drun::ctl
