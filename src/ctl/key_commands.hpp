// The commands of drunctl about keys of a store. Each gives the exit code, and throws
// cli::UsageError.
#pragma once

#include "ctl/command.hpp"

namespace drun::ctl {

int get(const Command& command);
int set(const Command& command);
int add(const Command& command);
int compare_set(const Command& command);
int check(const Command& command);
int wait(const Command& command);
int barrier(const Command& command);
int delete_key(const Command& command);
int keys(const Command& command);
int watch(const Command& command);

}  // namespace drun::ctl
