// Which agents drun starts on which hosts. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/host_list.hpp"
#include "launcher/hosts/remote_command.hpp"

namespace drun::launcher::hosts {

// More logins at once are a burden for one machine; from 33 hosts on others share it.
inline constexpr std::size_t kFanOut = 32;

struct StartPlan {
  std::vector<Host> hosts;  // in the order of their node ranks
  Launcher launcher;
  std::string drun;                      // this program's file
  std::size_t fan_out = kFanOut;         // how many hosts each drun starts itself
  bool copy_self = false;                // to hosts that have no drun of this version
  std::vector<std::string> flags;        // of every agent, argv[0] in front
  std::vector<std::string> program;      // and its arguments
  std::vector<std::string> environment;  // "NAME=value", as handed over
  std::string directory;
  int most_nodes = std::numeric_limits<int>::max();  // of the job; further hosts are spares
  bool ranks_count = true;                           // they are told their ranks
  bool slots_count = true;                           // the number of workers is not said otherwise
  bool meet_at_first = true;  // the nodes meet at the first host; else it was said where
  std::string conf;           // --rdzv-conf, as given; with meet_at_first
  bool says_is_host = false;  // it has is_host
};

// Where the nodes meet with meet_at_first.
struct Meeting {
  std::string place;     // "10.0.0.7:41001"
  std::size_t node = 0;  // this one has it
};

// Where the nodes meet, "host:port", if the first of them is listed as `name` and says this: the
// address that ssh reached it by, unless that leads others to themselves; then `name`, or what the
// host calls itself if only ssh knows that one. `leads_others`: as far as this machine can tell,
// others reach a host by this name.
[[nodiscard]] std::string meeting_place_at(
    const std::string& name, const Hello& hello,
    const std::function<bool(const std::string& name)>& leads_others);

// The command line of the agent of this node.
[[nodiscard]] std::vector<std::string> agent_command(const StartPlan& plan, std::size_t node,
                                                     const Meeting& meeting);

}  // namespace drun::launcher::hosts
