// Looks at threads, as tests fold them.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "stacks/stack_report.hpp"

namespace drun::stacks {

inline Sample worker(int rank, std::vector<std::string> frames) {
  Sample sample;
  sample.rank = rank;
  sample.state = 'S';
  sample.wait = "futex_do_wait";
  sample.call = "futex";
  sample.frames = std::move(frames);
  sample.silence = std::chrono::seconds(rank);
  return sample;
}

inline Sample thread(int rank, std::string name, std::vector<std::string> frames,
                     Kind kind = Kind::Thread) {
  Sample sample;
  sample.rank = rank;
  sample.kind = kind;
  sample.name = std::move(name);
  sample.state = 'S';
  sample.frames = std::move(frames);
  return sample;
}

// Eight ranks on two nodes: rank 5 hangs elsewhere than the others.
inline std::vector<StackReport> two_nodes() {
  std::vector<StackReport> reports;
  for (int node = 0; node < 2; ++node) {
    std::vector<Sample> samples;
    for (int rank = 4 * node; rank < 4 * node + 4; ++rank) {
      samples.push_back(rank == 5 ? worker(rank, {"read (libc.so.6)", "load", "main"})
                                  : worker(rank, {"recv (libc.so.6)", "all_reduce", "main"}));
      if (rank == 5) {
        samples.back().state = 'D';
        samples.back().wait = "cl_sync_io_wait";
        samples.back().call = "read";
      }
      samples.push_back(thread(rank, "watchdog", {"poll (libc.so.6)", "watch"}));
      samples.push_back(thread(rank, "watchdog", {"poll (libc.so.6)", "watch"}));
    }
    reports.push_back(fold({"node" + std::to_string(node), {4 * node, 4 * node + 3}}, samples));
  }
  return reports;
}

}  // namespace drun::stacks
