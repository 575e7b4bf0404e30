// Lists of hosts as schedulers write them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::cluster {

// More nodes than any machine has; a longer list is a mistake, or meant to do harm.
inline constexpr std::size_t kMostHosts = 100'000;

// Slurm's compressed list: "login,rack[0-1]node[01-16,20]-ib". Any number of brackets in a name, of
// which the left ones change last; numbers are as wide as the first of their range is written.
// Names that are there twice stay. The error says what cannot be read.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

// The first word of each line, as in PBS_NODEFILE, LSB_DJOB_HOSTFILE and PE_HOSTFILE.
[[nodiscard]] Result<std::vector<std::string>> first_words(std::string_view text);

// LSB_MCPU_HOSTS: "node1 16 node2 16", hosts and their slots in turn.
[[nodiscard]] Result<std::vector<std::string>> hosts_with_slots(std::string_view text);

// "a,b,c", as VC_WORKER_HOSTS.
[[nodiscard]] Result<std::vector<std::string>> comma_list(std::string_view text);

// Each host once, where it was first.
[[nodiscard]] std::vector<std::string> each_once(std::vector<std::string> hosts);

// The same machine, as far as names tell: "node7" is "node7.cluster.example".
[[nodiscard]] bool same_host(std::string_view one, std::string_view other);

}  // namespace drun::launcher::cluster
